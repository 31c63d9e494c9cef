//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// script is a member of a shell script, in place of a boot script.
func script(image, text string) Member {
	return Member{
		Image: image, Files: map[string]string{"boot.sh": text}, Command: []string{"/bin/sh", "/boot/boot.sh"},
		AuthPassword: "of the application", AdminPassword: "of the operator",
	}
}

func TestAMemberSeesWhatAContainerWould(t *testing.T) {
	for sentence, row := range map[string]struct{ command, want string }{
		"its user is 999, named as upstream":    {"id", "uid=999(redis) gid=999(redis) groups=999(redis)"},
		"it has no capability":                  {"grep ^Cap /proc/self/status | cut -f 2 | sort -u", "0000000000000000"},
		"it gets none by a program":             {"grep ^NoNewPrivs /proc/self/status | cut -f 2", "1"},
		"it is the first process":               {"echo $$", "1"},
		"it has a name":                         {"echo $HOSTNAME; cat /proc/sys/kernel/hostname", "member-0\nmember-0"},
		"the image can't be written":            {"touch /x 2>&1; touch /usr/x 2>&1; touch /etc/x 2>&1; touch /boot/x 2>&1 || :", strings.Repeat("Read-only file system\n", 4)},
		"its volumes can":                       {"touch /data/x /run/database/x /tmp/x /dev/shm/x && echo fine", "fine"},
		"the passwords are files":               {"cat /secrets/auth/password /secrets/admin/password", "of the applicationof the operator"},
		"its environment is the container's":    {"echo $GREETING; env | cut -d = -f 1 | sort | tr '\\n' ' '", "hello\nGREETING HOME HOSTNAME PATH PWD"},
		"devices are those of a container":      {"ls /dev | tr '\\n' ' '", "fd full null random shm stderr stdin stdout termination-log urandom zero"},
		"its network is the loopback device":    {"grep : /proc/net/dev | cut -d : -f 1", "lo"},
		"nothing else runs in its process tree": {"[ $(ls /proc | grep -c '^[0-9]') -lt 9 ] && echo few", "few"},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := script("redis:8.0", "{ "+row.command+"; } | sed 's/^touch: .*: //'\n")
			if strings.Contains(row.command, "$$") {
				member = script("redis:8.0", row.command+"\n")
			}
			member.Env = map[string]string{"GREETING": "hello"}
			running := Start(t, member)
			exit := running.Wait()
			if exit.Code != 0 || strings.TrimSpace(exit.Output) != strings.TrimSpace(row.want) {
				t.Errorf("it ended with %d, and printed\n%s\nwant\n%s", exit.Code, exit.Output, row.want)
			}
		})
	}
}

func TestAMembersEndIsToldAsTheKubeletWould(t *testing.T) {
	for sentence, row := range map[string]struct {
		script string
		end    func(*Running) Exit
		want   int
	}{
		"it ends by itself":                    {"echo a sentence >/dev/termination-log; exit 65", (*Running).Wait, 65},
		"SIGTERM reaches a server":             {"exec redis-server --save '' --dir /data", (*Running).Stop, 0},
		"SIGTERM doesn't reach a deaf script":  {"echo up; sleep 1000", func(r *Running) Exit { r.Signal(syscall.SIGTERM); return r.Kill() }, 137},
		"SIGTERM interrupts one that listens":  {"trap 'exit 143' TERM; redis-server --save '' --dir /data & wait", (*Running).Stop, 143},
		"SIGKILL ends all, and nobody objects": {"trap '' TERM; redis-server --save '' & wait", (*Running).Kill, 137},
	} {
		t.Run(sentence, func(t *testing.T) {
			running := Start(t, script("redis:8.0", row.script))
			if row.want == 0 || row.want == 143 {
				running.WaitFor("redis-cli", "ping")
			}
			if exit := row.end(running); exit.Code != row.want {
				t.Errorf("it ended with %d, want %d; it printed\n%s", exit.Code, row.want, exit.Output)
			}
			if message := running.TerminationMessage(); row.want == 65 && message != "a sentence" {
				t.Errorf("its termination message is %q", message)
			}
		})
	}
}

func TestARestartKeepsThePodAndAnotherMemberTheVolume(t *testing.T) {
	count := script("valkey/valkey:9.1", "for folder in /data /run/database /tmp; do echo x >>$folder/starts; wc -l <$folder/starts; done | tr '\\n' ' '\n")
	count.Data = filepath.Join(t.TempDir(), "data")
	first := Start(t, count)
	first.Wait()
	first.Restart()
	if exit := first.Wait(); exit.Output != "2 2 2 " {
		t.Errorf("after a restart it printed %q", exit.Output)
	}
	if exit := Start(t, count).Wait(); exit.Output != "3 1 1 " {
		t.Errorf("in another pod it printed %q", exit.Output)
	}
	content, err := os.ReadFile(filepath.Join(first.DataFolder(), "starts"))
	if err != nil || string(content) != "x\nx\nx\n" {
		t.Errorf("its volume holds %q (%v)", content, err)
	}
}

func TestMembersServeTheSamePortAndEachIsReached(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		running := Start(t, script("redis:8.0", "exec redis-server --save '' --dir /data --bind 127.0.0.1\n"))
		running.WaitFor("redis-cli", "ping")
		if printed, err := running.Exec(t.Context(), "SET name "+name+"\n", "redis-cli"); err != nil || printed != "OK\n" {
			t.Fatalf("it answered %q (%v)", printed, err)
		}
		connection, err := running.Dial(t.Context(), "tcp", "127.0.0.1:6379")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }() // it was only read
		if _, err := connection.Write([]byte("GET name\r\n")); err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(connection)
		length, lengthErr := reader.ReadString('\n')
		value, err := reader.ReadString('\n')
		if err != nil || lengthErr != nil || strings.TrimSpace(value) != name {
			t.Errorf("%s answered %q %q (%v)", name, length, value, err)
		}
	}
}

func TestAFailedCommandSaysWhatItPrinted(t *testing.T) {
	running := Start(t, script("postgres:18", "trap 'exit 0' TERM; sleep 1000 & wait\n"))
	_, err := running.Exec(t.Context(), "", "/bin/sh", "-c", "command -v initdb; echo no >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3: /usr/lib/postgresql/18/bin/initdb\nno") {
		t.Errorf("the error is %v", err)
	}
}
