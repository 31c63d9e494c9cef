// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// play plays one block, and returns what the transcript says.
func play(t *testing.T, change func(*Options), lines ...string) (string, error) {
	t.Helper()
	document, err := Parse("a/README.md", "```console\n"+strings.Join(lines, "\n")+"\n```")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := document.Commands()
	if err != nil {
		t.Fatal(err)
	}
	var transcript strings.Builder
	options := Options{
		Dir: t.TempDir(), Env: os.Environ(), Transcript: &transcript,
		PrintTimeout: 10 * time.Second, CommandTimeout: 20 * time.Second, EndTimeout: 10 * time.Second,
	}
	if change != nil {
		change(&options)
	}
	session, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	err = session.Play(t.Context(), commands)
	if err == nil {
		err = session.End(t.Context())
	}
	leader := session.shell.Process.Pid
	if closing := session.Close(); closing != nil {
		t.Error(closing)
	}
	if left, listing := sessionOf(leader); len(left) > 0 || listing != nil {
		t.Errorf("processes %v are left (%v)", left, listing)
	}
	if _, statErr := os.Stat(session.folder); !errors.Is(statErr, os.ErrNotExist) {
		t.Errorf("%s is left (%v)", session.folder, statErr)
	}
	return transcript.String(), err
}

func TestWhatGoesWell(t *testing.T) {
	for sentence, lines := range map[string][]string{
		"a line that is printed":                       {"$ echo a", "a"},
		"on standard error":                            {"$ echo a >&2", "a"},
		"one without a line's end":                     {"$ printf a", "a"},
		"variables, folders and functions stay":        {"$ A=1; mkdir b; cd b; f() { echo $A in ${PWD##*/}; }", "$ f", "1 in b"},
		"several lines":                                {"$ echo a \\", "  b", "a b", "$ cat <<END", "$ c", "d", "END", "d"},
		"a failure that is asked for":                  {"$ ! false", "$ echo $?", "0"},
		"the code of the command before":               {"$ echo a", "$ echo $?", "0"},
		"a program doesn't eat the commands":           {"$ cat", "$ echo a", "a"},
		"a program in the background":                  {"$ sleep 1000 &", "$ kill $!", "$ ! wait $!"},
		"it is told to end":                            {"$ (trap 'echo ended; exit' TERM; echo begun; while :; do read -rt 0.01 <> <(:); done) &", "begun", "$ kill %1", "ended"},
		"the next has its number":                      {"$ sleep 1000 &", "$ kill %1; wait", "$ sleep 1001 &", "$ kill %1; wait"},
		"what it prints comes when it comes":           {"$ mkfifo p; (read -r line <p; echo got $line) &", "$ echo x >p; echo y", "got x", "y"},
		"the first of two lines may be the second":     {"$ mkfifo p; (read -r line <p; echo got $line) &", "$ echo x >p; echo y", "y", "got x"},
		"an ampersand in quotes is none":               {"$ echo 'a & b'", "a & b"},
		"it has ended before the shell is":             {"$ sleep 0.1 &"},
		"what a program prints in the end is awaited":  {"$ (sleep 0.2; echo late) &", "late"},
		"set -e isn't needed, and a pipe's code is it": {"$ false | true"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if transcript, err := play(t, nil, lines...); err != nil {
				t.Errorf("%v\n%s", err, transcript)
			}
		})
	}
}

func TestWhatDoesNot(t *testing.T) {
	short := func(options *Options) {
		options.PrintTimeout, options.EndTimeout = 300*time.Millisecond, 300*time.Millisecond
	}
	for sentence, row := range map[string]struct {
		lines  []string
		change func(*Options)
		wants  []string
	}{
		"a line that isn't printed":             {[]string{"$ echo b; echo c", "b", "d"}, short, []string{"a/README.md:4: not printed within 300ms", "\td\n", "1 lines before", "\tb\n\tc"}},
		"a line that is printed too early":      {[]string{"$ echo b; echo c", "c", "b"}, short, []string{"a/README.md:4: not printed", "\tb\n"}},
		"a line that the command before prints": {[]string{"$ echo b", "$ echo c", "b"}, short, []string{"a/README.md:4: not printed", "\tc"}},
		"one that came before the command, from the background": {
			[]string{"$ (echo b; sleep 1000) &", "b", "$ echo c", "b"}, short, []string{"a/README.md:5: not printed"},
		},
		"nothing is printed":                 {[]string{"$ true", "b"}, short, []string{"a/README.md:3: not printed", "Nothing was printed."}},
		"an exit code":                       {[]string{"$ echo b", "$ echo c; false"}, nil, []string{"a/README.md:3: $ echo c; false", "exit code 1", "\tc"}},
		"an exit code, though all was said":  {[]string{"$ echo b; (exit 3)", "b"}, nil, []string{"a/README.md:2:", "exit code 3"}},
		"a success where a failure is shown": {[]string{"$ ! true"}, nil, []string{"a/README.md:2:", "exit code 1"}},
		"a program that isn't there":         {[]string{"$ no-such-program"}, nil, []string{"a/README.md:2:", "exit code 127", "command not found"}},
		"what is no command":                 {[]string{"$ if"}, nil, []string{"a/README.md:2:", "syntax error"}},
		"a command that doesn't end":         {[]string{"$ echo b; sleep 1000"}, func(o *Options) { o.CommandTimeout = 300 * time.Millisecond }, []string{"a/README.md:2:", "hasn't ended within 300ms", "\tb"}},
		"the shell ends":                     {[]string{"$ exit"}, nil, []string{"a/README.md:2:", "the shell has ended"}},
		"a program that is left":             {[]string{"$ sleep 1000 &", "$ sleep 1001 &"}, short, []string{"left running", "sleep 1000", "sleep 1001"}},
		"one that wouldn't end by itself": {
			[]string{"$ (trap '' TERM HUP INT; echo b; while :; do sleep 1000; done) &", "b"}, short, []string{"left running"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			transcript, err := play(t, row.change, row.lines...)
			if err == nil {
				t.Fatalf("there is no error\n%s", transcript)
			}
			for _, want := range row.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q isn't in the error:\n%v", want, err)
				}
			}
		})
	}
}

func TestTheTranscriptHasCommandsAndWhatTheyPrint(t *testing.T) {
	transcript, err := play(t, nil, "$ echo a; echo b", "b", "$ cat <<END", "c", "END", "c")
	if want := "$ echo a; echo b\na\nb\n$ cat <<END\nc\nEND\nc\n"; err != nil || transcript != want {
		t.Errorf("it is %q (%v)", transcript, err)
	}
}

func TestTheShellIsFresh(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".bashrc"), []byte("echo mine; exit 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "A=b"}
	transcript, err := play(t, func(o *Options) { o.Env = env }, "$ echo $A $PWD")
	if err != nil || strings.Contains(transcript, "mine") || !strings.Contains(transcript, "b "+os.TempDir()) {
		t.Errorf("it prints %q (%v)", transcript, err)
	}
}

func TestAnInterruptionEndsTheSession(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	session, err := Start(Options{
		Dir: t.TempDir(), Env: os.Environ(), Transcript: &strings.Builder{},
		PrintTimeout: time.Minute, CommandTimeout: time.Minute, EndTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = session.Play(ctx, []Command{{Path: "a/README.md", Line: 1, Text: "sleep 1000"}})
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("the error is %v", err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}
