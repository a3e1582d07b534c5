# Prints what zsh completes its argument, a command line, to: a shell behind a pseudo-terminal lists it.
zmodload zsh/zpty
folder=$(mktemp -d)
meshwright completion zsh > $folder/_meshwright
zpty shell "TERM=dumb COLUMNS=200 LINES=100 zsh -f -i"
zpty -w shell "PS1=; fpath=($folder \$fpath); autoload -U compinit; compinit -u -d $folder/dump"
zpty -w shell "zstyle ':completion:*' menu no; setopt no_list_beep; LISTMAX=0; bindkey '^I' list-choices; print READY"
while zpty -r shell line; do [[ $line == *READY* && $line != *print* ]] && break; done
zpty -w -n shell "$1"$'\t'
sleep 2
zpty -w -n shell $'\C-u'
zpty -w shell "print FINI''SHED"
while zpty -r shell line; do
  [[ $line == *FINISHED* ]] && break
  print -r -- "$line"
done
zpty -d shell
rm -r $folder
