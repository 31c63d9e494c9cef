// SPDX-License-Identifier: Apache-2.0

package audit

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
)

// Log follows a log while it is written, also where it goes on in a new file, as it
// does every 100 MB.
type Log struct {
	path string
	// beginning begins the names of the users whose requests are kept.
	beginning string
	done      chan struct{}
	ended     sync.WaitGroup

	mu    sync.Mutex
	file  *os.File
	lines *bufio.Reader
	// isReplaced tells that there is a new file, so that nothing more will be written
	// to the one that is read.
	isReplaced bool
	rest       []byte // the beginning of a line whose end isn't written yet
	byUser     map[string][]Entry
	failed     error
}

// Follow keeps the requests of users whose names begin alike, from now on.
func Follow(path, beginning string) (*Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("seek in the audit log: %w", err), file.Close())
	}
	l := &Log{path: path, beginning: beginning, done: make(chan struct{}), file: file, lines: bufio.NewReaderSize(file, 1<<20), byUser: map[string][]Entry{}}
	l.ended.Go(func() {
		// Often enough that no file is passed over.
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-l.done:
				return
			case <-ticker.C:
				l.mu.Lock()
				l.catchUp()
				l.mu.Unlock()
			}
		}
	})
	return l, nil
}

// Stop ends that, and tells what went wrong on the way.
func (l *Log) Stop() error {
	close(l.done)
	l.ended.Wait()
	return errors.Join(l.failed, l.file.Close())
}

// Of returns the requests of a user so far, each once, without the first ones.
func (l *Log) Of(username string, without int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp()
	return slices.Clone(l.byUser[username][min(without, len(l.byUser[username])):])
}

// Count is how many requests of a user there were so far.
func (l *Log) Count(username string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp()
	return len(l.byUser[username])
}

// catchUp reads what has been written.
func (l *Log) catchUp() {
	for l.failed == nil {
		line, err := l.lines.ReadSlice('\n')
		l.rest = append(l.rest, line...)
		switch {
		case err == nil:
			l.note(l.rest)
			l.rest = l.rest[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if !l.goesOn() {
				return
			}
		default:
			l.failed = fmt.Errorf("read the audit log: %w", err)
		}
	}
}

// goesOn tells whether there is more at the end of the file, and opens the next one
// once this one is read to an end that is its last.
func (l *Log) goesOn() bool {
	if l.isReplaced {
		return l.openNext()
	}
	next, err := os.Stat(l.path)
	current, currentErr := l.file.Stat()
	l.isReplaced = err == nil && currentErr == nil && !os.SameFile(next, current) // for a moment there is none
	return l.isReplaced
}

func (l *Log) openNext() bool {
	file, err := os.Open(l.path)
	if err != nil {
		return false // it is there, or replaced again
	}
	_ = l.file.Close() // it was only read
	l.file, l.isReplaced = file, false
	l.lines.Reset(file)
	return true
}

func (l *Log) note(line []byte) {
	if !bytes.Contains(line, []byte(l.beginning)) {
		return
	}
	var entry Entry
	if err := json.Unmarshal(line, &entry); err != nil {
		l.failed = fmt.Errorf("read a line of the audit log: %w", err)
		return
	}
	if user := entry.User.Username; strings.HasPrefix(user, l.beginning) && entry.isCounted() {
		l.byUser[user] = append(l.byUser[user], entry)
	}
}
