// Forms of {% mcp_form %}: to submit one is to call its tool, and what is wrong is said at the fields.
// A host may forbid forms to its frames. Then no submit ever happens, so the button's click counts,
// which is also what the Enter key does in a field.
(() => {
  "use strict";
  const ERRORS = "django-mcp/errors";
  const json = (form, name) => JSON.parse(form.dataset[name]);
  const controlsOf = (form, name) => [...form.elements].filter((control) => control.name === name);
  const optionsOf = (controls) => controls.flatMap((control) => [...(control.options ?? [control])]);
  const isChosen = (option) => option.selected ?? option.checked;

  // What was filled in, as the tool takes it.
  const asData = (file) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve({ name: file.name, data: reader.result, mimeType: file.type || undefined });
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
  const parsed = (text) => {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  };
  const textOf = (controls) =>
    controls[0].type === "radio" ? (controls.find((each) => each.checked)?.value ?? "") : controls[0].value;
  const readers = {
    text: textOf,
    json: (controls) => (textOf(controls) ? parsed(textOf(controls)) : ""),
    flag: ([control]) => control.checked,
    maybe: (controls) => ({ true: true, false: false })[textOf(controls)] ?? "",
    many: (controls) => optionsOf(controls).filter(isChosen).map((option) => option.value),
    file: ([control]) => (control.files.length ? asData(control.files[0]) : ""),
  };
  const asNumber = (text) => (text.trim() && !isNaN(text) ? Number(text) : text);
  const isEmpty = (value) => value === "" || value?.length === 0;
  const wasFilled = (controls) =>
    optionsOf(controls).some((each) => each.defaultSelected ?? (each.defaultChecked || each.defaultValue));

  const read = async (form) => {
    const given = {};
    const emptied = [];
    const clearable = json(form, "mcpClearable");
    for (const [name, { kind, numeric }] of Object.entries(json(form, "mcpFields"))) {
      const controls = controlsOf(form, name);
      let value = await readers[kind](controls);
      if (numeric) value = Array.isArray(value) ? value.map(asNumber) : asNumber(value);
      if (!isEmpty(value)) given[name] = value;
      else if (clearable.includes(name) && wasFilled(controls)) emptied.push(name);
    }
    if (emptied.length) given.clear = emptied;
    return given;
  };

  // What is wrong.
  const describe = (controls, messages) => {
    const [first] = controls;
    const described = first.closest("fieldset") ?? first;
    const id = `${first.id}_error`;
    document.getElementById(id)?.remove();
    const others = (described.getAttribute("aria-describedby") ?? "").split(" ").filter((each) => each && each !== id);
    if (messages.length) {
      const list = Object.assign(document.createElement("ul"), { id, className: "errorlist" });
      list.append(...messages.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
      if (described === first) first.before(list);
      else described.querySelector("legend").after(list);
      others.push(id);
    }
    if (others.length) described.setAttribute("aria-describedby", others.join(" "));
    else described.removeAttribute("aria-describedby");
    for (const control of controls) {
      if (messages.length) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  };
  const say = (form, role, text) => {
    form.querySelector(`[role="${role}"]`).textContent = text;
  };
  const show = (form, errors, text = "") => {
    const names = Object.keys(json(form, "mcpFields"));
    for (const name of names) describe(controlsOf(form, name), errors[name] ?? []);
    const others = Object.keys(errors).filter((name) => !names.includes(name));
    say(form, "alert", [text, ...others.flatMap((name) => errors[name])].filter(Boolean).join(" "));
    form.querySelector('[aria-invalid="true"]')?.focus();
  };
  // What the browser itself finds, in its language, without a call.
  const invalid = (form) => {
    const errors = {};
    for (const name of Object.keys(json(form, "mcpFields"))) {
      const found = controlsOf(form, name).map((control) => control.validationMessage);
      const messages = [...new Set(found.filter(Boolean))];
      if (messages.length) errors[name] = messages;
    }
    return errors;
  };

  const setBusy = (form, busy) => {
    form.ariaBusy = String(busy);
    form.querySelector("[type=submit]").ariaDisabled = String(busy);
  };
  const textIn = ({ content = [] }) => content.map((block) => block.text ?? "").join("\n");
  const call = async (form) => {
    const given = await read(form);
    const asked = new CustomEvent("mcp-submit", { bubbles: true, cancelable: true, detail: { arguments: given } });
    if (!form.dispatchEvent(asked)) return;
    const result = await mcpApp.callTool(form.dataset.mcpTool, asked.detail.arguments);
    const errors = result._meta?.[ERRORS];
    if (result.isError) {
      show(form, errors ?? {}, errors ? "" : textIn(result));
    } else {
      form.reset();
      say(form, "status", result.structuredContent ? "" : textIn(result));
    }
    form.dispatchEvent(new CustomEvent("mcp-result", { bubbles: true, detail: result }));
  };
  const submit = async (form) => {
    if (form.ariaBusy === "true") return;
    const errors = invalid(form);
    show(form, errors);
    say(form, "status", "");
    if (Object.keys(errors).length) return;
    setBusy(form, true);
    try {
      await call(form);
    } catch (error) {
      show(form, {}, error.message);
    } finally {
      setBusy(form, false);
    }
  };
  addEventListener("click", (event) => {
    const form = event.target.closest?.("form[data-mcp-tool] [type=submit]")?.form;
    if (!form) return;
    event.preventDefault();
    submit(form);
  });

  // What a form begins with, for those about something that is there already.
  mcpApp.fillForm = (form, values) => {
    for (const name of Object.keys(json(form, "mcpFields"))) {
      if (!(name in values)) continue;
      const wanted = [values[name]].flat().map((value) => String(value ?? ""));
      for (const control of controlsOf(form, name)) {
        if (control.options) {
          for (const option of control.options) option.selected = option.defaultSelected = wanted.includes(option.value);
        } else if (control.type === "radio" || (control.type === "checkbox" && control.hasAttribute("value"))) {
          control.checked = control.defaultChecked = wanted.includes(control.value);
        } else if (control.type === "checkbox") {
          control.checked = control.defaultChecked = Boolean(values[name]);
        } else if (control.type !== "file") {
          control.value = control.defaultValue = wanted[0];
        }
      }
    }
  };
})();
