# ruff: noqa: I002 - as the tutorial has it: paginate finds no annotations that are texts

from datetime import date

from django.shortcuts import get_object_or_404
from ninja import File, FilterSchema, NinjaAPI, Query, Schema, UploadedFile
from ninja.pagination import paginate
from ninja.security import django_auth

from .models import Employee

api = NinjaAPI(title="Employees", urls_namespace="employees")


class EmployeeIn(Schema):
    first_name: str
    last_name: str
    department_id: int | None = None
    birthdate: date | None = None


class EmployeeOut(EmployeeIn):
    id: int


class EmployeeFilter(FilterSchema):
    last_name: str | None = None
    department_id: int | None = None


@api.post("/employees", auth=django_auth, tags=["employees"])
def create_employee(request, payload: EmployeeIn):
    return {"id": Employee.objects.create(**payload.dict()).pk}


@api.post("/employees/{employee_id}/cv", tags=["files"])
def upload_cv(request, employee_id: int, cv: File[UploadedFile]):
    employee = get_object_or_404(Employee, id=employee_id)
    employee.cv.save(cv.name, cv)
    return {"success": True}


@api.get("/employees/{employee_id}", response=EmployeeOut, tags=["employees"])
def get_employee(request, employee_id: int):
    return get_object_or_404(Employee, id=employee_id)


@api.get("/employees", response=list[EmployeeOut], tags=["employees"])
@paginate
def list_employees(request, filters: Query[EmployeeFilter]):
    return filters.filter(Employee.objects.order_by("pk"))


@api.get("/everybody", response=list[EmployeeOut], tags=["whole"])
def list_everybody(request):
    return Employee.objects.order_by("pk")


@api.put("/employees/{employee_id}", auth=django_auth, tags=["employees"])
def update_employee(request, employee_id: int, payload: EmployeeIn):
    employee = get_object_or_404(Employee, id=employee_id)
    for attr, value in payload.dict(exclude_unset=True).items():
        setattr(employee, attr, value)
    employee.save()
    return {"success": True}


@api.delete("/employees/{employee_id}", auth=django_auth, tags=["employees"])
def delete_employee(request, employee_id: int):
    get_object_or_404(Employee, id=employee_id).delete()
    return {"success": True}
