# Prints what bash completes each argument, a command line, to.
source <(meshwright completion bash)
for line in "$@"; do
  read -ra COMP_WORDS <<<"$line"
  [[ $line == *' ' ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _meshwright
  printf '%s\n' "${COMPREPLY[@]}"
done
