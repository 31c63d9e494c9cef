// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// volume is a member's, in a folder of the machine that the tests run on: the
// shared script runs there as it is, but for where the folders are.
type volume struct {
	t      *testing.T
	folder string
}

func newVolume(t *testing.T, files map[string]string) volume {
	t.Helper()
	for _, program := range []string{"sh", "flock", "sort", "od"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	v := volume{t, t.TempDir()}
	v.write("boot/"+CommonFile, strings.NewReplacer("/data", v.folder+"/data", "/live", v.folder+"/live").Replace(common))
	v.write("data/lost+found/none", "")
	for name, content := range files {
		v.write(name, content)
	}
	return v
}

func (v volume) write(name, content string) {
	v.t.Helper()
	path := filepath.Join(v.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		v.t.Fatal(err)
	}
}

// read returns the content of a file, or that there is none.
func (v volume) read(name string) string {
	content, err := os.ReadFile(filepath.Join(v.folder, name))
	if err != nil {
		return "none"
	}
	return string(content)
}

// run runs a script in the pod db-1 that reads the shared one first, and returns
// what it prints and how it ends.
func (v volume) run(script string, environment ...string) (printed string, code int) {
	v.t.Helper()
	command := exec.CommandContext(v.t.Context(), "sh", "-c", ". boot/"+CommonFile+"\n"+script) // #nosec G204 -- of this file
	command.Dir, command.Stderr = v.folder, v.t.Output()
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOSTNAME=db-1"}, environment...)
	output, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		v.t.Fatal(err)
	}
	return strings.TrimSpace(string(output)), command.ProcessState.ExitCode()
}

const (
	isNew         = "TOPOLOGY_STATE=new"
	isInitialized = "TOPOLOGY_STATE=initialized"
	members       = "MEMBERS_DOMAIN=db-members.shop.svc"
	foreignData   = 65
	noData        = 66
	inUse         = 75
)

// TestWhatIsOnAVolumeDecides starts a member of version 8.0 of an engine.
func TestWhatIsOnAVolumeDecides(t *testing.T) {
	const decide = "if open_data redis 8.0; then has_data=true; else has_data=false; fi\n" +
		"if must_copy $has_data; then echo copied; elif [ $has_data = true ]; then echo opened; else echo made; fi"
	data := func(engine string) map[string]string {
		return map[string]string{"data/db/file": "", "data/engine": engine + "\n"}
	}
	granted := data("redis 8.0")
	granted["data/cloned"] = "token\n"
	for sentence, row := range map[string]struct {
		files       map[string]string
		environment []string
		want        string // becomes of data
		code        int
	}{
		"an empty one of a new database gets data":                  {nil, []string{isNew}, "made", 0},
		"an empty one of a database that has data gets none":        {nil, []string{isInitialized}, "", noData},
		"an empty one that nobody knows gets none":                  {nil, nil, "", noData},
		"an empty one beside a primary gets that one's":             {nil, []string{isInitialized, members, "TOPOLOGY_PRIMARY=db-0"}, "copied", 0},
		"an empty one of the primary itself gets none":              {nil, []string{isInitialized, members, "TOPOLOGY_PRIMARY=db-1"}, "", noData},
		"what a start left that was broken off is of no value":      {map[string]string{"data/init/file": "", "data/gone/file": "", "data/engine": "redis 8.0\n"}, []string{isNew}, "made", 0},
		"data of the same version are opened":                       {data("redis 8.0"), []string{isInitialized}, "opened", 0},
		"data of an older one are, too":                             {data("redis 7.4"), []string{isInitialized}, "opened", 0},
		"data of a newer one aren't":                                {data("redis 8.2"), []string{isInitialized}, "", foreignData},
		"data of one that is newer by its number, not its letters":  {data("redis 10.0"), []string{isInitialized}, "", foreignData},
		"data of another engine aren't opened":                      {data("valkey 8.0"), []string{isInitialized}, "", foreignData},
		"data of which nobody says whose they are aren't":           {map[string]string{"data/db/file": ""}, []string{isInitialized}, "", foreignData},
		"files of others are left alone":                            {map[string]string{"data/notes.txt": ""}, []string{isNew}, "", foreignData},
		"hidden files of others are, too":                           {map[string]string{"data/.notes": ""}, []string{isNew}, "", foreignData},
		"data are given up where that is wished":                    {data("redis 8.0"), []string{isInitialized, members, "TOPOLOGY_PRIMARY=db-0", "TOPOLOGY_CLONE=db-2:other db-1:token"}, "copied", 0},
		"and once":                                                  {granted, []string{isInitialized, members, "TOPOLOGY_PRIMARY=db-0", "TOPOLOGY_CLONE=db-1:token"}, "opened", 0},
		"not where it is wished of another member":                  {data("redis 8.0"), []string{isInitialized, members, "TOPOLOGY_PRIMARY=db-0", "TOPOLOGY_CLONE=db-2:token"}, "opened", 0},
		"nor by the primary, which has nobody to copy them from":    {data("redis 8.0"), []string{isInitialized, members, "TOPOLOGY_PRIMARY=db-1", "TOPOLOGY_CLONE=db-1:token"}, "opened", 0},
		"nor while nobody is to start as the primary":               {data("redis 8.0"), []string{isInitialized, "TOPOLOGY_PRIMARY=-", "TOPOLOGY_CLONE=db-1:token"}, "opened", 0},
		"an empty one gets none while nobody says whom to ask then": {nil, []string{isInitialized, "TOPOLOGY_PRIMARY=db-0"}, "", noData},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := newVolume(t, row.files)
			if printed, code := v.run(decide, row.environment...); printed != row.want || code != row.code {
				t.Errorf("they are %q, and it ends with %d; want %q, %d", printed, code, row.want, row.code)
			}
			for name, content := range row.files {
				if got := v.read(name); got != content {
					t.Errorf("%s holds %q, and held %q", name, got, content)
				}
			}
		})
	}
}

func TestOneServerAtATimeRunsOnAVolume(t *testing.T) {
	v := newVolume(t, map[string]string{"data/.lock": "", "data/db/file": "", "data/engine": "redis 8.0\n"})
	lock, err := os.Open(filepath.Join(v.folder, "data", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}()
	// As the lock of a server is that starts at the same moment.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if _, code := v.run("open_data redis 8.0"); code != inUse {
		t.Errorf("beside another server it ends with %d", code)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	// The lock is the server's that the script becomes.
	if printed, code := v.run("open_data redis 8.0; exec flock -n data/.lock echo free"); printed != "" || code != 1 {
		t.Errorf("a server beside it finds the lock %q (%d)", printed, code)
	}
}

func TestDataAreGivenUpOnceTheNewOnesAreWhole(t *testing.T) {
	v := newVolume(t, map[string]string{"data/db/file": "old", "data/gone/file": "older"})
	if _, code := v.run("fill() { echo half >data/init/file; false; }; initialise fill"); code == 0 || v.read("data/db/file") != "old" {
		t.Errorf("where that fails it ends with %d, and the data are %q", code, v.read("data/db/file"))
	}
	_, code := v.run("fill() { printf new >data/init/file; }; initialise fill")
	if code != 0 || v.read("data/db/file") != "new" || v.read("data/init/file") != "none" || v.read("data/gone/file") != "none" {
		t.Errorf("it ends with %d, and the data are %q", code, v.read("data/db/file"))
	}
}

func TestTheLastParametersThatAServerTookStayInUse(t *testing.T) {
	const accept = "check() { ! grep -q bad \"$1\"; }; accept_live live.conf check"
	for sentence, row := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the newest, where it takes them":                  {map[string]string{"live/live.conf": "new", "data/live.conf": "old"}, "new"},
		"the last, where it doesn't":                       {map[string]string{"live/live.conf": "bad", "data/live.conf": "old"}, "old"},
		"none, where it never took any":                    {map[string]string{"live/live.conf": "bad"}, ""},
		"the newest, whatever a broken-off start has left": {map[string]string{"live/live.conf": "new", "data/live.conf": "old", "data/live.conf.new": "bad"}, "new"},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := newVolume(t, row.files)
			if _, code := v.run(accept); code != 0 || v.read("data/live.conf") != row.want || v.read("data/live.conf.new") != "none" {
				t.Errorf("it ends with %d, and in use is %q, want %q", code, v.read("data/live.conf"), row.want)
			}
		})
	}
}
