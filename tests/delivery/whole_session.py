"""A client that does something of everything in one session."""

from __future__ import annotations

from typing import Any

from tests.support.client import Client

from . import site


async def tell(application: Any) -> None:
    """Call, listen, be asked, come back, cancel, and end the session."""
    site.gates.open("stop")
    client = await Client(application).open(elicitation={})
    await client.result("echo")
    async with client.listen() as own:
        await own.event()
        async with client.call("question") as asking:
            question = await asking.message()
            answer = {"action": "accept", "content": {"name": "Ada"}}
            assert await client.answer(question, answer) == 202
            assert "Ada" in (await asking.messages())[-1]["result"]["content"][0]["text"]
        async with client.call("speak_and_wait", id="cut") as cut:
            await cut.message()
        async with client.listen(cut.last_id) as again:
            site.gates.open()
            assert (await again.messages())[-1]["id"] == "cut"
        async with client.call("wait", id="stopped", gate="stop") as _:
            pass
    assert await client.cancel("stopped") == 202
    async with client.request("DELETE") as ended:
        assert ended.status == 204
