"""The doorbell: a word to another process that there is something to read. It carries nothing.

The only module that knows the channel layer. A wake-up may be lost, or never sent because there is
no layer, or none that reaches other processes: whoever waits looks for itself from time to time.
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
REJOIN_SECONDS: Final = 3600
"""Seconds after which a process joins again: layers forget members after a day."""
RETRY_SECONDS: Final = 1.0
"""Seconds to wait when the layer fails, before it is asked again."""
INTERVAL_SECONDS: Final = 0.05
"""Least seconds between two wake-ups of everybody: a storm of changes is no storm of messages."""
WAIT_SECONDS: Final = 0.8
"""Seconds that a process without a bell of its own waits for the layer."""
BACK_OFF_SECONDS: Final = 10.0
"""Seconds for which such a process leaves a layer alone that did not take its message."""
_LOOK: Final = {"type": "ring"}
CHANGED: Final = "changed"
FORGET: Final = "forget"
_UNREACHABLE: Final = "-"
"""Begins the name of a process that no layer reaches."""


class Doorbell:
    """The channel of this process, and the loop on which it speaks to the layer.

    A loop of its own, whichever server runs the process, since connections of a layer belong to
    one loop, and there is none under WSGI.
    """

    def __init__(
        self,
        process_id: str,
        look: Callable[[], None],
        changed: Callable[[], None],
        forget: Callable[[], None],
    ) -> None:
        self._look = look
        self._changed = changed
        self._handlers = {CHANGED: changed, FORGET: forget}
        self._layer: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._failed = False
        self._sending: set[str] = set()
        self._sent_at = dict.fromkeys(self._handlers, float("-inf"))
        self.channel = _UNREACHABLE + process_id
        """Where this process is to be woken. Without a layer it names the process, no more."""

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
        ready.wait(RETRY_SECONDS)

    def wake(self, channels: Iterable[str]) -> None:
        """Tell the processes behind ``channels`` to look. From any thread; never fails."""
        for channel in channels:
            if channel == self.channel:
                self._look()
            elif channel and not channel.startswith(_UNREACHABLE):
                self._submit(self._send(channel))

    def wake_everybody(self) -> None:
        """Tell every process to look what has changed. From any thread; never fails."""
        self._changed()
        self._send_to_all(CHANGED)

    def clear_session_caches(self) -> None:
        """Tell every process to forget its sessions. From any thread; never fails."""
        self._send_to_all(FORGET)

    def wake_everybody_once(self, kind: str = CHANGED) -> None:
        """Tell every process, from one that listens to nobody, such as a shell, and may end soon.

        ``kind`` is what is told: that something has changed, or to forget sessions. Takes less than
        a second; who cannot be woken finds out at the next look.
        """
        if time.monotonic() < self._sent_at[kind] + INTERVAL_SECONDS:
            return
        self._sent_at[kind] = time.monotonic()
        layer = _layer()
        if layer is None:
            return
        # A thread, for this one may not wait, whatever the layer does.
        sending = threading.Thread(target=self._send_once, args=(layer, kind), daemon=True)
        sending.start()
        sending.join(WAIT_SECONDS)
        if sending.is_alive() or self._failed:
            self._failed = False
            self._sent_at = dict.fromkeys(self._sent_at, time.monotonic() + BACK_OFF_SECONDS)

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
                if self.channel.startswith(_UNREACHABLE):
                    self.channel = await self._layer.new_channel("mcp")
                    ready.set()
                if time.monotonic() - joined > REJOIN_SECONDS:
                    joined = time.monotonic()
                    await self._layer.group_add(GROUP, self.channel)
                async with asyncio.timeout(REJOIN_SECONDS):
                    message = await self._layer.receive(self.channel)
                self._note_success()
                self._handlers.get(str(message.get("type")), self._look)()
            except TimeoutError:
                pass  # it is time to join again, or the layer does not wait for longer
            except Exception as error:
                # A layer that has come back may have forgotten who had joined.
                joined = float("-inf")
                # Some give up after some seconds in which nobody rang: that is no failure.
                if time.monotonic() - began < RETRY_SECONDS:
                    self._log_failure(error)
                    await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, channel: str) -> None:
        await self._layer.send(channel, _LOOK)

    def _send_to_all(self, kind: str) -> None:
        if self._loop is not None and kind not in self._sending:
            self._sending.add(kind)
            self._submit(self._send_to_group(kind))

    async def _send_to_group(self, kind: str) -> None:
        await asyncio.sleep(self._sent_at[kind] + INTERVAL_SECONDS - time.monotonic())
        self._sent_at[kind] = time.monotonic()
        self._sending.discard(kind)
        await self._layer.group_send(GROUP, {"type": kind})

    def _send_once(self, layer: Any, kind: str) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(layer.group_send(GROUP, {"type": kind}))
        except Exception as error:
            self._log_failure(error)
        finally:
            with suppress(Exception):
                loop.close()

    def _submit(self, coroutine: Any) -> None:
        if self._loop is None or self._loop.is_closed():
            coroutine.close()
            return
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        future.add_done_callback(self._note_sent)

    def _note_sent(self, future: Any) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._log_failure(error)

    def _log_failure(self, error: BaseException) -> None:
        # ChannelFull, a lost connection: slower for a while, and nothing is lost.
        level = logging.DEBUG if self._failed else logging.WARNING
        self._failed = True
        logger.log(level, "The channel layer failed; waiting processes poll instead: %r", error)

    def _note_success(self) -> None:
        if self._failed:
            self._failed = False
            logger.info("The channel layer is back")

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()


def reaches_others() -> bool:
    """Return whether there is a layer by which other processes can be woken."""
    return _layer() is not None


def _layer() -> Any:
    """Return a layer of our own, made as the site's is: a layer's receiving half knows one loop."""
    if DEFAULT_CHANNEL_LAYER not in channel_layers.configs:
        return None
    layer = channel_layers.make_backend(DEFAULT_CHANNEL_LAYER)
    # One in memory reaches nobody but this process, which is woken without it.
    return None if isinstance(layer, InMemoryChannelLayer) else layer
