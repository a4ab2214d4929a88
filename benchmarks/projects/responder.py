"""The least that can answer: what the load generator reaches against it is the generator's own.

    python responder.py PORT

No parsing beyond the end of the request, which is there when its length is: the generator sends
requests of one length, one at a time.
"""

from __future__ import annotations

import select
import socket
import sys

ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 21\r\n\r\n"
    b'{"value": 4242424242}'
)


def main() -> None:
    """Serve until killed."""
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    connections: dict[int, socket.socket] = {}
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                poll.register(connection, select.EPOLLIN)
            elif connections[number].recv(65536):
                connections[number].send(ANSWER)
            else:
                connections.pop(number).close()


if __name__ == "__main__":
    main()
