#!/usr/bin/env python3
"""Talks to meshwright-lsp-server as an editor does: opened, a file with an error is marked where it is, and the mark
goes away when the text is put right."""
import json
import subprocess

SERVER = ["meshwright-lsp-server"]
URI = "file:///model.mlir"
GOOD = """func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
"""
BAD = GOOD.replace("4x3", "4x5")


class Server:
    def __init__(self):
        self.process = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def send(self, method, params, **more):
        text = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()

    def receive(self, wanted):
        """The next message for which `wanted` holds."""
        while True:
            size = None
            while (line := self.process.stdout.readline().strip()) or size is None:
                assert line, "the server has ended"
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            message = json.loads(self.process.stdout.read(size))
            if wanted(message):
                return message

    def diagnostics(self):
        return self.receive(lambda m: m.get("method") == "textDocument/publishDiagnostics")["params"]["diagnostics"]


server = Server()
server.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
capabilities = server.receive(lambda m: m.get("id") == 1)["result"]["capabilities"]
assert capabilities["hoverProvider"] and capabilities["definitionProvider"], capabilities
server.send("initialized", {})

server.send("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "mlir", "version": 1, "text": BAD}})
diagnostics = server.diagnostics()
assert diagnostics and all(d["range"]["start"] == {"line": 1, "character": 7} for d in diagnostics), diagnostics
print(diagnostics[0]["message"])

server.send("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": GOOD}]})
assert server.diagnostics() == []

# From a use of %x to where it is defined.
server.send("textDocument/definition", {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 21}}, id=2)
(place,) = server.receive(lambda m: m.get("id") == 2)["result"]
assert place["range"]["start"]["line"] == 0, place

server.send("shutdown", None, id=3)
server.receive(lambda m: m.get("id") == 3)
server.send("exit", None)
assert server.process.wait(timeout=20) == 0
