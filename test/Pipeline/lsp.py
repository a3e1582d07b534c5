#!/usr/bin/env python3
"""Talks to meshwright-lsp-server as an editor does: opened, a file with an error is marked where it is, and the mark
goes away when the text is put right. What would end MLIR's server, which is no JSON, no message or a document that nests
too deep, is answered or marked, and the server goes on."""
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
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode())

    def write(self, text, name=b"Content-Length"):
        self.process.stdin.write(b"%s: %d\r\n\r\n%s" % (name, len(text), text))
        self.process.stdin.flush()

    def change(self, version, text):
        self.send("textDocument/didChange", {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]})

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

server.change(2, GOOD)
assert server.diagnostics() == []

# From a use of %x to where it is defined.
server.send("textDocument/definition", {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 21}}, id=2)
(place,) = server.receive(lambda m: m.get("id") == 2)["result"]
assert place["range"]["start"]["line"] == 0, place

# Hover: an op's documentation, and types in words.
SHARDED = """module {
  dist.mesh @mesh ["data" = 2, "tensor" = 4]
  func.func @f(%x: tensor<8x16xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>,
               %y: tensor<8x16xbf16, #dist.sharding<@mesh, [{}, {}]>>) {
    %h = train.relu %x : (tensor<8x16xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>) -> tensor<8x16xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>
    return
  }
}
"""


def ask(kind, line, character, number):
    server.send(f"textDocument/{kind}", {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}, id=number)
    return server.receive(lambda m: m.get("id") == number)["result"]


on_op = ask("hover", 1, 12, 30)["contents"]["value"]
assert "### `train.linear`" in on_op and "y = x W^T." in on_op and "- result: 2 x 4 of f32, 32 bytes\n" in on_op, on_op
on_value = ask("hover", 2, 10, 31)["contents"]["value"]
assert "Result of `train.linear`" in on_value and "2 x 4 of f32, 32 bytes\n" in on_value, on_value
server.change(3, SHARDED)
assert server.diagnostics() == []
for line, character, words in ((2, 16, "8 x 16 of f32, 512 bytes, 64 on a rank; sharded over data in dimension 0, sharded over tensor in dimension 1"),
                               (3, 16, "8 x 16 of bf16, 256 bytes; replicated on all ranks"),
                               (4, 12, "64 on a rank; sharded over data")):
    text = ask("hover", line, character, 32 + line)["contents"]["value"]
    assert words in text, text

# Completion: ops by MLIR's server, attributes by their tables.
ops = GOOD.replace("train.linear %x, %w", "train.")
server.change(4, ops)
server.diagnostics()
items = ask("completion", 1, 13, 40)["items"]
assert any("relu" in item["label"] for item in items), items[:5]
attributes = GOOD.replace("train.linear %x, %w", "train.linear %x, %w {train.r")
server.change(5, attributes)
server.diagnostics()
items = {item["label"]: item for item in ask("completion", 1, len('  %y = train.linear %x, %w {train.r'), 41)["items"]}
assert "train.role" in items and items["train.role"]["documentation"], items
assert all(label.startswith("train.r") for label in items), items
server.change(6, GOOD)
assert server.diagnostics() == []

# Messages that are none.
PARSE, INVALID = -32700, -32600
for text, answer in ((b"[" * 1_000_000, (None, PARSE)), (b'{"a":' * 200_000, (None, PARSE)), (b"hello", (None, PARSE)), (b"", (None, PARSE)),
                     (b'{"jsonrpc":"2.0","method":"\xff"}', (None, PARSE)), (b"[]", (None, INVALID)), (b"3", (None, INVALID)),
                     (b'{"id":7,"method":"shutdown"}', (7, INVALID)), (b'{"jsonrpc":"2.0"}', (None, INVALID))):
    server.write(text)
    error = server.receive(lambda m: "error" in m)
    assert (error["id"], error["error"]["code"]) == answer, (text[:20], error)
print(error["error"]["message"])

# Documents that MLIR's parser does not survive; the third line is at fault.
for version, (text, column) in enumerate((("(" * 1_000_000, 512), ("module attributes {a = " + "[" * 100_000, 23 + 511),
                                          ("#m = affine_map<(d0) -> (" + "-" * 100_000 + "d0)>", 25 + 512),
                                          ("#m = affine_map<(d0) -> (d0" + "+ (d0)" * 100_000 + ")>", 27 + 6 * 512),
                                          ("module attributes {a = " + "(() -> " * 100_000, 23 + 7 * 510 + 1),
                                          ('"a.b"(%5#2147483646) : (i32) -> ()', 8))):
    server.change(7 + version, f'// {"(" * 1000} {"-" * 1000}\n"{"[" * 1000}"\n{text}')
    (fault,) = server.diagnostics()
    assert fault["range"]["start"] == {"line": 2, "character": column}, fault
    print(fault["message"])
server.change(20, GOOD)
assert server.diagnostics() == []

# Names of headers have no case.
server.write(b'{"jsonrpc":"2.0","id":3,"method":"shutdown"}', b"content-length")
server.receive(lambda m: m.get("id") == 3)
server.send("exit", None)
assert server.process.wait(timeout=20) == 0
