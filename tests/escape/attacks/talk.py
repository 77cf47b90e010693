# SPDX-License-Identifier: Apache-2.0
# Talks to servers in ways that no honest client does: python3 talk.py '[{"name": ..., "to": [address, port], ...}, ...]'. Prints, for each, what came back and
# after how many milliseconds the first of it (or the refusal) came: {"name": {"said": ..., "ms": ...}}.
#   send   texts, sent one after the other; the answer to each is awaited, after an empty one for a moment only
#   tls    name for SNI; null: TLS without SNI
#   split  TLS: bytes of the hello in each record
#   pieces bytes of each write
#   hidden TLS: adds an encrypted client hello to the hello; it is enough when the server answers
#   udp    true: a datagram
import json
import socket
import ssl
import struct
import sys
import time

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE


def records(hello, size):
    body = hello[5:]
    pieces = [body[i:i + size] for i in range(0, len(body), size)]
    return b''.join(hello[:3] + struct.pack('!H', len(piece)) + piece for piece in pieces)


def with_hidden(hello):
    """Lengths of record, message and extensions grow by those of one more extension."""
    extension = struct.pack('!HH', 0xfe0d, 40) + bytes([0, 0, 1, 0, 1, 7, 0, 0, 0, 30]) + bytes(30)
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from('!H', hello, at)[0]
    at += 1 + hello[at]
    size = struct.unpack_from('!H', hello, at)[0]
    body = hello[5:at] + struct.pack('!H', size + len(extension)) + hello[at + 2:] + extension
    body = body[:1] + struct.pack('!I', len(body) - 4)[1:] + body[4:]
    return hello[:3] + struct.pack('!H', len(body)) + body


class Plain:
    def __init__(self, attempt):
        self.pieces = attempt.get('pieces')
        self.sock = socket.create_connection(attempt['to'], timeout=15)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        size = self.pieces or len(data) or 1
        for i in range(0, len(data), size):
            self.sock.sendall(data[i:i + size])

    def receive(self):
        return self.sock.recv(65536)


class Secure(Plain):
    def __init__(self, attempt):
        super().__init__(attempt)
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.coming, self.going, server_hostname=attempt['tls'])
        self.first = True
        self.attempt = attempt
        while not self.step(self.tls.do_handshake):
            if attempt.get('hidden'):
                return
        self.flush()

    def flush(self):
        data = self.going.read()
        if data and self.first and 'split' in self.attempt:
            data = records(data, self.attempt['split'])
        if data and self.first and self.attempt.get('hidden'):
            data = with_hidden(data)
        self.first = self.first and not data
        if data:
            super().send(data)

    def step(self, work):
        try:
            self.result = work()
            return True
        except ssl.SSLWantReadError:
            self.flush()
            if self.attempt.get('hidden'):
                return False
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionResetError('closed')
            self.coming.write(data)
            return False

    def send(self, data):
        self.tls.write(data)
        self.flush()

    def receive(self):
        if self.attempt.get('hidden'):
            return b'hello back' if self.sock.recv(1) == b'\x16' else b''
        while not self.step(lambda: self.tls.read(65536)):
            pass
        return self.result


def datagram(attempt):
    family = socket.AF_INET6 if ':' in attempt['to'][0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.settimeout(15)
    sock.connect(tuple(attempt['to']))
    sock.send(bytes.fromhex(attempt['send'][0]))
    return sock.recv(65536).hex()


def talk(attempt):
    if attempt.get('udp'):
        return datagram(attempt)
    connection = Secure(attempt) if 'tls' in attempt else Plain(attempt)
    said = b''
    if attempt.get('hidden'):
        return connection.receive().decode()
    for text in attempt['send']:
        connection.send(text.encode('latin1'))
        connection.sock.settimeout(15 if text else 0.3)
        try:
            said += connection.receive() + b'\n'
        except TimeoutError:
            if text:
                raise
    return said.decode('latin1')


answers = {}
for one in json.loads(sys.argv[1]):
    begun = time.monotonic()
    try:
        said = talk(one)
    except OSError as error:
        said = f'error {error}'
    answers[one['name']] = {'said': said, 'ms': int((time.monotonic() - begun) * 1000)}
print(json.dumps(answers))
