"""The doorbell: a word to another process that there is something to read. It carries nothing.

The only module that knows the channel layer. A ring may be lost, or never sent because there is no
layer, or none that reaches other processes: whoever waits looks for itself from time to time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import InMemoryChannelLayer, channel_layers

logger = logging.getLogger("django_mcp.doorbell")

GROUP: Final = "django_mcp"
"""Every process that has somebody waiting; for what concerns all of them."""
REJOIN: Final = 3600
"""Seconds after which a process joins again: layers forget members after a day."""
PAUSE: Final = 1.0
"""Seconds to wait when the layer fails, before it is asked again."""
GATHERING: Final = 0.05
"""Least seconds between two rings for everybody: a storm of changes is no storm of rings."""
BRIEFLY: Final = 0.8
"""Seconds that a process without a bell of its own waits for the layer."""
GIVEN_UP: Final = 10.0
"""Seconds for which such a process leaves a layer alone that did not take its ring."""
_RING: Final = {"type": "ring"}
CHANGED: Final = "changed"
FORGET: Final = "forget"
_SILENT: Final = "-"
"""Begins the name of a process that no layer reaches."""


class Doorbell:
    """The channel of this process, and the loop on which it speaks to the layer.

    A loop of its own, whichever server runs the process, since connections of a layer belong to
    one loop, and there is none under WSGI.
    """

    def __init__(
        self,
        process_id: str,
        rung: Callable[[], None],
        changed: Callable[[], None],
        forget: Callable[[], None],
    ) -> None:
        self._rung = rung
        self._changed = changed
        self._heard = {CHANGED: changed, FORGET: forget}
        self._layer: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._failed = False
        self._calling: set[str] = set()
        self._called = dict.fromkeys(self._heard, float("-inf"))
        self.channel = _SILENT + process_id
        """Where to ring for this process. Without a layer it names the process, no more."""

    def start(self) -> None:
        """Begin to listen, if there is a layer that reaches other processes."""
        layer = _layer()
        if layer is None:
            return
        self._layer, self._loop = layer, asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(ready,), name="mcp-doorbell", daemon=True
        )
        self._thread.start()
        ready.wait(PAUSE)

    def ring(self, channels: Iterable[str]) -> None:
        """Tell the processes behind ``channels`` to look. From any thread; never fails."""
        for channel in channels:
            if channel == self.channel:
                self._rung()
            elif channel and not channel.startswith(_SILENT):
                self._speak(self._send(channel))

    def ring_everybody(self) -> None:
        """Tell every process to look what has changed. From any thread; never fails."""
        self._changed()
        self._call(CHANGED)

    def ring_to_forget(self) -> None:
        """Tell every process to forget its sessions. From any thread; never fails."""
        self._call(FORGET)

    def ring_once(self, word: str = CHANGED) -> None:
        """Do the same in a process that listens to nobody, such as a shell, and may end soon.

        Takes less than a second; who cannot be rung finds out by himself.
        """
        if time.monotonic() < self._called[word] + GATHERING:
            return
        self._called[word] = time.monotonic()
        layer = _layer()
        if layer is None:
            return
        # A thread, for this one may not be kept waiting, whatever the layer does.
        ringing = threading.Thread(target=self._ring_once, args=(layer, word), daemon=True)
        ringing.start()
        ringing.join(BRIEFLY)
        if ringing.is_alive() or self._failed:
            self._failed = False
            self._called = dict.fromkeys(self._called, time.monotonic() + GIVEN_UP)

    def close(self) -> None:
        """Stop listening; tests want that."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._cancel_all)
            self._thread.join(5)

    def _run(self, ready: threading.Event) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen(ready))
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()

    async def _listen(self, ready: threading.Event) -> None:
        joined = float("-inf")
        while True:
            began = time.monotonic()
            try:
                if self.channel.startswith(_SILENT):
                    self.channel = await self._layer.new_channel("mcp")
                    ready.set()
                if time.monotonic() - joined > REJOIN:
                    joined = time.monotonic()
                    await self._layer.group_add(GROUP, self.channel)
                async with asyncio.timeout(REJOIN):
                    message = await self._layer.receive(self.channel)
                self._recovered()
                self._heard.get(str(message.get("type")), self._rung)()
            except Exception as error:
                # Some layers give up after some seconds in which nobody rang: that is no failure.
                if time.monotonic() - began < PAUSE:
                    joined = float("-inf")
                    self._complain(error)
                    await asyncio.sleep(PAUSE)

    async def _send(self, channel: str) -> None:
        await self._layer.send(channel, _RING)

    def _call(self, word: str) -> None:
        if self._loop is not None and word not in self._calling:
            self._calling.add(word)
            self._speak(self._send_to_group(word))

    async def _send_to_group(self, word: str) -> None:
        await asyncio.sleep(self._called[word] + GATHERING - time.monotonic())
        self._called[word] = time.monotonic()
        self._calling.discard(word)
        await self._layer.group_send(GROUP, {"type": word})

    def _ring_once(self, layer: Any, word: str) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(layer.group_send(GROUP, {"type": word}))
        except Exception as error:
            self._complain(error)
        finally:
            with suppress(Exception):
                loop.close()

    def _speak(self, coroutine: Any) -> None:
        if self._loop is None or self._loop.is_closed():
            coroutine.close()
            return
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(self._sent)

    def _sent(self, future: Any) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._complain(error)

    def _complain(self, error: BaseException) -> None:
        # ChannelFull, a lost connection: slower for a while, and nothing is lost.
        level = logging.DEBUG if self._failed else logging.WARNING
        self._failed = True
        logger.log(level, "The channel layer failed; waiting processes poll instead: %r", error)

    def _recovered(self) -> None:
        if self._failed:
            self._failed = False
            logger.info("The channel layer is back")

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()


def reaches_others() -> bool:
    """Return whether there is a layer by which other processes can be rung."""
    return _layer() is not None


def _layer() -> Any:
    """Return a layer of our own, made as the site's is: a layer's receiving half knows one loop."""
    if DEFAULT_CHANNEL_LAYER not in channel_layers.configs:
        return None
    layer = channel_layers.make_backend(DEFAULT_CHANNEL_LAYER)
    # One in memory reaches nobody but this process, which is rung without it.
    return None if isinstance(layer, InMemoryChannelLayer) else layer
