-- Neovim 0.11 or newer, in init.lua.
vim.filetype.add { extension = { mlir = "mlir" } }
vim.lsp.config("meshwright", { cmd = { "meshwright-lsp-server" }, filetypes = { "mlir" } })
vim.lsp.enable("meshwright")
