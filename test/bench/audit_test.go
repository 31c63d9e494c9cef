//go:build bench

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"coolops.cn/database-manager/test/e2e/audit"
)

// identity begins the names of those whose requests are counted, as the API server
// calls them.
const identity = "system:serviceaccount:" + operatorNamespace + ":bench-"

// auditLog follows the API server's log of requests, also where it goes on in a
// new file.
type auditLog struct {
	path  string
	done  chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex
	file   *os.File
	lines  *bufio.Reader
	rest   []byte // the beginning of a line whose end isn't written yet
	byUser map[string][]audit.Entry
	failed error
}

// followAudit begins at the log's end.
func followAudit(path string) (*auditLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("seek in the audit log: %w", err), file.Close())
	}
	a := &auditLog{path: path, done: make(chan struct{}), file: file, lines: bufio.NewReaderSize(file, 1<<20), byUser: map[string][]audit.Entry{}}
	a.ended.Go(func() {
		// Often enough that no file is passed over: each has 100 MB.
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-a.done:
				return
			case <-ticker.C:
				a.mu.Lock()
				a.catchUp()
				a.mu.Unlock()
			}
		}
	})
	return a, nil
}

func (a *auditLog) stop() error {
	close(a.done)
	a.ended.Wait()
	return errors.Join(a.failed, a.file.Close())
}

// catchUp reads what has been written.
func (a *auditLog) catchUp() {
	for a.failed == nil {
		line, err := a.lines.ReadSlice('\n')
		a.rest = append(a.rest, line...)
		switch {
		case err == nil:
			a.note(a.rest)
			a.rest = a.rest[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if !a.openNext() {
				return
			}
		default:
			a.failed = fmt.Errorf("read the audit log: %w", err)
		}
	}
}

// openNext goes on with a new file, if there is one.
func (a *auditLog) openNext() bool {
	next, err := os.Stat(a.path)
	current, currentErr := a.file.Stat()
	if err != nil || currentErr != nil || os.SameFile(next, current) {
		return false // while it is being replaced there is none
	}
	file, err := os.Open(a.path)
	if err != nil {
		return false
	}
	_ = a.file.Close() // it was only read
	a.file = file
	a.lines.Reset(file)
	return true
}

func (a *auditLog) note(line []byte) {
	if !bytes.Contains(line, []byte(identity)) {
		return
	}
	var entry audit.Entry
	if err := json.Unmarshal(line, &entry); err != nil {
		a.failed = fmt.Errorf("read a line of the audit log: %w", err)
		return
	}
	isBegun := entry.Verb == "watch" && entry.Stage == "ResponseStarted"
	if user := entry.User.Username; strings.HasPrefix(user, identity) && (isBegun || entry.Verb != "watch" && entry.Stage == "ResponseComplete") {
		a.byUser[user] = append(a.byUser[user], entry)
	}
}

// of returns the requests of a user, without the first ones.
func (a *auditLog) of(user string, without int) []audit.Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catchUp()
	return slices.Clone(a.byUser[user][min(without, len(a.byUser[user])):])
}

// count is how many requests of a user there were.
func (a *auditLog) count(user string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catchUp()
	return len(a.byUser[user])
}

// tally are requests by what they were for.
type tally struct {
	writes, reads, leases, events int
	// by is the number of those of each verb and resource.
	by map[string]int
}

// isLease and isEvent tell requests that are counted apart: those that keep the
// lease, which come at rest, too, and those that tell people what happened.
func isLease(entry audit.Entry) bool { return entry.ObjectRef.Resource == "leases" }

func isEvent(entry audit.Entry) bool { return entry.ObjectRef.Resource == "events" }

// kindOf is the verb and the resource, as "patch databasemanagers/status".
func kindOf(entry audit.Entry) string {
	kind := entry.Verb + " " + entry.ObjectRef.Resource
	if entry.ObjectRef.Subresource != "" {
		kind += "/" + entry.ObjectRef.Subresource
	}
	return kind
}

func count(entries []audit.Entry) tally {
	counted := tally{by: map[string]int{}}
	for _, entry := range entries {
		counted.by[kindOf(entry)]++
		switch {
		case isLease(entry):
			counted.leases++
		case isEvent(entry):
			counted.events++
		case entry.IsWrite():
			counted.writes++
		default:
			counted.reads++
		}
	}
	return counted
}

// isAtRest tells what a process at rest may ask for: its lease, and watches anew.
func isAtRest(entry audit.Entry) bool { return isLease(entry) || entry.Verb == "watch" }
