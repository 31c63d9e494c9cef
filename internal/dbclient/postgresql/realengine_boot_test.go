//go:build realengine

// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coolops.cn/database-manager/internal/engine/enginetest"
	engine "coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/plan"
	"coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"
)

func TestAMemberRefusesAVolumeThatIsntItsOwn(t *testing.T) {
	for sentence, row := range map[string]struct {
		files    map[string]string
		topology string
		code     int
		want     string
	}{
		"a folder of another program":                            {map[string]string{"pgdata/PG_VERSION": "18\n"}, "new", 65, "holds pgdata, which no database of this operator put there"},
		"another engine's data":                                  {map[string]string{"engine": "mysql 9.7\n", "db/ibdata1": ""}, "new", 65, "holds data of mysql, and this is postgresql"},
		"data of unknown origin":                                 {map[string]string{"db/PG_VERSION": "18\n"}, "new", 65, "folder db of unknown origin"},
		"data of a newer version":                                {map[string]string{"engine": "postgresql 19\n", "db/PG_VERSION": "19\n"}, "new", 65, "last opened by postgresql 19, and this is postgresql 18, which is older"},
		"data of an older version":                               {map[string]string{"engine": "postgresql 17\n", "db/PG_VERSION": "17\n"}, "new", 65, "format of PostgreSQL 17, and this is PostgreSQL 18"},
		"data of an older version, that a newer one was told of": {map[string]string{"engine": "postgresql 18\n", "db/PG_VERSION": "17\n"}, "new", 65, "format of PostgreSQL 17, and this is PostgreSQL 18"},
		"data without a version":                                 {map[string]string{"engine": "postgresql 18\n", "db/base": ""}, "new", 65, "format of PostgreSQL (unknown), and this is PostgreSQL 18"},
		"data of another user":                                   {map[string]string{"engine": "postgresql 18\n", "db/PG_VERSION": "18\n"}, "new", 65, "belong to another user than 999"},
		"an empty one, when there were data":                     {nil, "initialized", 66, "initialized before"},
		"an empty one, when nobody says that it may be":          {nil, "", 66, "initialized before"},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := newMember(t, "18")
			member.Env[plan.TopologyStateVariable] = row.topology
			if row.topology == "" {
				member.Env = nil
			}
			for name, content := range row.files {
				path := filepath.Join(member.Data, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			before := list(t, member.Data)
			running := enginetest.Start(t, member)
			exit, message := running.Wait(), running.TerminationMessage()
			if exit.Code != row.code || !strings.Contains(message, strings.ReplaceAll(row.want, "initialized", "initialised")) || strings.Contains(message, "\n") {
				t.Errorf("it ended with %d and %q; it printed\n%s", exit.Code, message, exit.Output)
			}
			if after := list(t, member.Data); !slices.Equal(after, append([]string{".lock"}, before...)) {
				t.Errorf("before it held %v, after %v", before, after)
			}
		})
	}
}

// list lists the files below a folder, each with its size.
func list(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(path, folder+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestNeitherVersionOpensTheDataOfTheOtherAndEachItsOwn(t *testing.T) {
	versions := engine.New().Versions()
	for _, pair := range [][2]string{{versions[0], versions[1]}, {versions[1], versions[0]}} {
		t.Run(pair[1]+" on data of "+pair[0], func(t *testing.T) {
			member := newMember(t, pair[0])
			first := startPromoted(t, member)
			connectApp(t, first).mustQuery("CREATE TABLE t AS SELECT 'kept' AS word")
			if exit := stopAsTheKubeletDoes(t, first); exit.Code != 0 {
				t.Fatalf("it ended with %d", exit.Code)
			}
			other := newMember(t, pair[1])
			other.Data = member.Data
			if exit := enginetest.Start(t, other).Wait(); exit.Code != 65 || !strings.Contains(exit.Output, pair[0]) {
				t.Errorf("%s ended with %d; it printed\n%s", pair[1], exit.Code, exit.Output)
			}
			if got := connectApp(t, start(t, member)).mustQuery("SELECT word FROM t"); got != "kept" {
				t.Errorf("the table holds %q", got)
			}
		})
	}
}

func TestTwoServersNeverRunOnOneVolume(t *testing.T) {
	member := newMember(t, "18")
	first := start(t, member)
	second := enginetest.Start(t, member)
	if exit := second.Wait(); exit.Code != 75 || !strings.Contains(second.TerminationMessage(), "in use by another server") {
		t.Errorf("it ended with %d; it printed\n%s", exit.Code, exit.Output)
	}
	awaitRole(t, dial(t, first, adminPassword), v1alpha1.MemberRoleReplica)
}

func TestAMemberThatIsStoppedWhileItIsMadeLeavesNothingHalf(t *testing.T) {
	term := func(_ *testing.T, r *enginetest.Running) enginetest.Exit { return r.Stop() }
	kill := func(_ *testing.T, r *enginetest.Running) enginetest.Exit { return r.Kill() }
	hook := func(t *testing.T, r *enginetest.Running) enginetest.Exit {
		// It may be ended together with the container that it ends, which is what
		// counts.
		_, _ = r.Exec(t.Context(), "", engine.New().Stop()...)
		return r.Wait()
	}
	for sentence, row := range map[string]struct {
		// moment is the pattern of a file that is there from some moment of the
		// making on.
		moment string
		end    func(*testing.T, *enginetest.Running) enginetest.Exit
		want   int
	}{
		"SIGTERM at its beginning":            {"init", term, 143},
		"SIGTERM while there is a server":     {"init/global/pg_control", term, 143},
		"SIGTERM when there are databases":    {"init/base/5/PG_VERSION", term, 143},
		"SIGTERM while the accounts are made": {"init/base/??*/PG_VERSION", term, 143},
		"the hook when there are databases":   {"init/base/5/PG_VERSION", hook, 143},
		"SIGKILL while there is a server":     {"init/global/pg_control", kill, 137},
		"SIGKILL while the accounts are made": {"init/base/??*/PG_VERSION", kill, 137},
	} {
		t.Run(sentence, func(t *testing.T) {
			member := newMember(t, "18")
			running := enginetest.Start(t, member)
			awaitFile(t, filepath.Join(running.DataFolder(), row.moment))
			asked := time.Now()
			exit := row.end(t, running)
			if took := time.Since(asked); exit.Code != row.want || took > 5*time.Second {
				t.Errorf("it ended with %d after %s, want %d; it printed\n%s", exit.Code, took, row.want, exit.Output)
			}
			if _, err := os.Stat(filepath.Join(member.Data, "db")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is a data directory (%v)", err)
			}
			again := start(t, member)
			awaitRole(t, dial(t, again, adminPassword), v1alpha1.MemberRoleReplica)
		})
	}
}

func awaitFile(t *testing.T, pattern string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("there is no %s", pattern)
		}
	}
}

func TestDataThatAKubeletGaveToAGroupAreOpened(t *testing.T) {
	running := start(t, newMember(t, "18"))
	running.Kill()
	if err := os.Chmod(filepath.Join(running.DataFolder(), "db"), fs.ModeSetgid|0o770); err != nil {
		t.Fatal(err)
	}
	restart(running)
	awaitRole(t, dial(t, running, adminPassword), v1alpha1.MemberRoleReplica)
}

func TestTheProbeLeavesNoTraceInTheLog(t *testing.T) {
	running := start(t, newMember(t, "18"))
	before := running.Output()
	for range 3 {
		running.WaitFor(engine.New().Probe()...)
	}
	if after := strings.TrimPrefix(running.Output(), before); strings.Contains(after, "FATAL") || strings.Contains(after, "ERROR") {
		t.Errorf("the probe leaves\n%s", after)
	}
}
