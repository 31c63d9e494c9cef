// SPDX-License-Identifier: Apache-2.0

package postgresql

import (
	"slices"
	"strconv"
	"strings"

	"coolops.cn/database-manager/internal/plan"
)

// accessFile says who may connect.
const accessFile = "pg_hba.conf"

// setting is one line of the configuration file.
type setting struct{ name, value string }

// config renders the configuration that a member is restarted for, with those of
// the parameters that aren't live which the spec sets. The others are in a file
// that it includes. What a member decides for itself, and keeps with its data by
// ALTER SYSTEM, stands in postgresql.auto.conf. What isn't here is as the server
// has it by default: among that is all that makes a commit durable.
func config(fixed plan.Settings) string {
	return render(slices.Concat([]setting{
		{"listen_addresses", "*"},
		{"port", strconv.Itoa(Port)},
		{"unix_socket_directories", plan.RunDir},
		{"hba_file", plan.BootDir + "/" + accessFile},
		{"password_encryption", "scram-sha-256"},
		{"ssl", "off"},

		{"max_connections", "100"},
		{"shared_buffers", "128MB"},
		// Memory that the processes of one query share. The default takes it from
		// /dev/shm, of which a container has 64 MB, and a query that needs more
		// fails; mmap writes it to the volume. System V memory has no limit but the
		// container's own, and the server can't start without some of it anyway.
		{"dynamic_shared_memory_type", "sysv"},

		// Nine members that copy from the tenth, each by two sessions while it joins,
		// and the operator, which asks what only such a session is told. One that it
		// gave up counts until the server notices.
		{"wal_level", "replica"},
		{"max_wal_senders", "100"},
		{"hot_standby", "on"},
		// What the log of changes takes of the volume for members that have fallen
		// behind has bounds.
		{"wal_keep_size", "256MB"},
		{"max_slot_wal_keep_size", "1GB"},
		// A commit is on this member's disk when a client hears of it, and on those of
		// the replicas that synchronous_standby_names asks for, which a member keeps
		// with its data.
		{"synchronous_commit", "on"},
		// After so long without a word the other side is taken for gone: a primary
		// that shuts down waits no longer for a replica, and a replica connects anew.
		{"wal_sender_timeout", "20s"},
		{"wal_receiver_timeout", "20s"},
		// Commits wait for a replica that connects again to a primary that was killed.
		{"wal_retrieve_retry_interval", "500ms"},

		// Standard error, which is the container's log.
		{"log_destination", "stderr"},
		{"logging_collector", "off"},
		{"log_line_prefix", "%m [%p] %q%u@%d "},
		// A statement can hold a password, as ALTER ROLE does, and one that fails is
		// logged by default.
		{"log_min_error_statement", "panic"},
		{"log_statement", "none"},
		{"log_min_duration_statement", "-1"},

		{"lc_messages", "C"},
		{"default_text_search_config", "pg_catalog.english"},
	}, lines(fixed), []setting{{"include", plan.DataDir + "/" + liveFile}}))
}

func render(settings []setting) string {
	var file strings.Builder
	for _, line := range settings {
		file.WriteString(line.name + " = " + quote(line.value) + "\n")
	}
	return file.String()
}

// quote writes a value so that PostgreSQL reads exactly it, whatever it holds: in
// single quotes, where two of them stand for one, and \NNN for a byte. A number
// or a word stays as it is, for the reader's sake. No value holds NUL, which the
// server has no way to store.
func quote(value string) string {
	if isPlain(value) {
		return value
	}
	var quoted strings.Builder
	quoted.WriteByte('\'')
	for _, char := range []byte(value) {
		switch {
		case char == '\'' || char == '\\':
			quoted.Write([]byte{char, char})
		case char < ' ' || char == 0x7f:
			quoted.Write([]byte{'\\', '0' + char>>6, '0' + char>>3&7, '0' + char&7})
		default:
			quoted.WriteByte(char)
		}
	}
	quoted.WriteByte('\'')
	return quoted.String()
}

// isPlain tells whether a value is a word, or a number that may have a unit.
// Digits behind letters would begin another value.
func isPlain(value string) bool {
	unit := strings.TrimLeft(value, "0123456789")
	return value != "" && !strings.ContainsFunc(unit, func(char rune) bool {
		return (char < 'a' || char > 'z') && (char < 'A' || char > 'Z')
	})
}
