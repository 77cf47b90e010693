# SPDX-License-Identifier: Apache-2.0
"""input() and getpass(): asked by a line, answered by the user of the API, or EOFError."""
import builtins
import getpass
import sys
import threading

PROMPT_MAX = 1 << 16


class Questions:
    def __init__(self, kernel):
        self.kernel = kernel
        self.lock = threading.Lock()

    def install(self):
        builtins.input = self.input
        getpass.getpass = self.getpass

    def input(self, prompt="", /):
        """Reads a line from the user of this context."""
        return self._ask(str(prompt), False)

    def getpass(self, prompt="Password: ", stream=None):
        """Reads a line that is not to be shown."""
        return self._ask(str(prompt), True)

    def _ask(self, prompt, password):
        kernel = self.kernel
        run = kernel.run_id
        if run is None or not kernel.control.ours:
            raise EOFError("nobody is there to answer")
        sys.audit("builtins.input", prompt)
        with self.lock:
            kernel.streams.flush()
            kernel.control.send({"t": "input", "id": run, "prompt": prompt[:PROMPT_MAX], "password": password})
            return self._answer(run)

    def _answer(self, run):
        while True:
            message = self.kernel.control.receive()
            if message is None:
                raise EOFError("the question was not answered")
            if message.get("t") != "input":
                self.kernel.later.append(message)  # quit; whoever waits for it, too, looks there
                raise EOFError("the question was not answered")
            if message.get("id") == run:
                break
        if message.get("eof") or not isinstance(message.get("text"), str):
            raise EOFError("EOF when reading a line")
        return message["text"].removesuffix("\n")
