// SPDX-License-Identifier: Apache-2.0

// Package audit reads the log in which an API server notes its requests.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Operator is the name that the operator's pods have for the API server.
const Operator = "system:serviceaccount:database-manager-system:database-manager"

// Entry is a request: the part of an audit event that tests look at.
type Entry struct {
	Stage                    string           `json:"stage"`
	Verb                     string           `json:"verb"`
	RequestURI               string           `json:"requestURI"`
	User                     User             `json:"user"`
	ObjectRef                ObjectRef        `json:"objectRef"`
	ResponseStatus           ResponseStatus   `json:"responseStatus"`
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
}

// User is whose request it is.
type User struct {
	Username string              `json:"username"`
	Extra    map[string][]string `json:"extra"`
}

// Pod is the name of the pod whose token the request came with; empty if it came
// with another.
func (u User) Pod() string {
	return strings.Join(u.Extra["authentication.kubernetes.io/pod-name"], ",")
}

// ObjectRef is what the request is about; empty fields where it is about less.
type ObjectRef struct {
	APIGroup    string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// ResponseStatus is how it was answered; Code is of HTTP.
type ResponseStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e Entry) String() string {
	return fmt.Sprintf("%s %s, answered with %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
}

// IsWrite tells whether the request is to change something.
func (e Entry) IsWrite() bool { return e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" }

// isCounted tells whether this is the one entry of several about a request that
// counts: as it was answered, or as it was begun where the answer goes on.
func (e Entry) isCounted() bool {
	isBegun := e.Verb == "watch" && e.Stage == "ResponseStarted"
	return isBegun || e.Verb != "watch" && e.Stage == "ResponseComplete"
}

// LacksRight tells whether the request isn't granted. One that is refused for
// another reason is answered alike: a quota, a namespace that is going, a class
// whose volumes don't grow, or an admission plug-in that hasn't heard yet of types
// which were installed a moment ago.
func (e Entry) LacksRight() bool {
	others := []string{"exceeded quota", "is being terminated", "can be resized", "cannot find RESTMapping"}
	return e.ResponseStatus.Code == http.StatusForbidden && !slices.ContainsFunc(others, func(other string) bool {
		return strings.Contains(e.ResponseStatus.Message, other)
	})
}

// Read returns a user's requests out of a log, each once: as it was answered, or
// as it was begun where the answer goes on, as that of a watch does.
func Read(path, username string) ([]Entry, error) { return ReadFrom(path, username, 0) }

// ReadFrom is Read without what stands in the first offset bytes of the log, which
// was so long once.
func ReadFrom(path, username string, offset int64) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("seek in the audit log: %w", err), file.Close())
	}
	entries, err := readLines(bufio.NewScanner(file), username)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read the audit log %s: %w", path, err)
	}
	return entries, nil
}

func readLines(lines *bufio.Scanner, username string) ([]Entry, error) {
	lines.Buffer(nil, 1<<22)
	var entries []Entry
	for lines.Scan() {
		// Others aren't looked at, and they are most.
		if !strings.Contains(lines.Text(), username) {
			continue
		}
		var entry Entry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			continue // the last line may be half written
		}
		if entry.User.Username != username {
			continue
		}
		if entry.isCounted() {
			entries = append(entries, entry)
		}
	}
	return entries, lines.Err()
}
