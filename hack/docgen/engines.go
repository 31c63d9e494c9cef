// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"coolops.cn/database-manager/internal/engine/catalog"
	"coolops.cn/database-manager/internal/engine/mariadb"
	"coolops.cn/database-manager/internal/engine/mysql"
	"coolops.cn/database-manager/internal/engine/postgresql"
	"coolops.cn/database-manager/internal/engine/redis"
	"coolops.cn/database-manager/internal/plan"
)

// engines are those of the page, in its order.
func engines() []plan.Engine {
	return []plan.Engine{mysql.New(), mariadb.New(), postgresql.New(), redis.New(), redis.NewValkey()}
}

// renewEngines copies a page, with its generated parts made anew.
func renewEngines(in io.Reader, out io.Writer) error {
	page, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	text := string(page)
	parts := map[string]string{"releases": releases(), "engines": connections()}
	for _, engine := range engines() {
		parts["parameters of "+string(engine.Type())] = parameters(engine)
	}
	for name, content := range parts {
		if text, err = replacePart(text, name, content); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, text)
	return err
}

// replacePart replaces what stands between the two marks of a name.
func replacePart(page, name, content string) (string, error) {
	begin, end := "<!-- begin generated: "+name+" -->\n", "<!-- end generated: "+name+" -->\n"
	before, rest, hasBegin := strings.Cut(page, begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return "", fmt.Errorf("the page lacks the line %q, or behind it %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + content + end + after, nil
}

// releases is the table of versions and images.
func releases() string {
	table := &strings.Builder{}
	table.WriteString("| `dbtype` | `version` | image | |\n|---|---|---|---|\n")
	for _, engine := range engines() {
		for _, release := range catalog.Of(engine.Type()) {
			note := ""
			if release.Version == engine.DefaultVersion() {
				note = "default"
			}
			fmt.Fprintf(table, "| `%s` | `%s` | `%s` | %s |\n", release.Engine, release.Version, release.Image, note)
		}
	}
	return table.String()
}

// connections is the table of what a client has to know.
func connections() string {
	table := &strings.Builder{}
	table.WriteString("| `dbtype` | port | application's account | database | URI |\n|---|---|---|---|---|\n")
	for _, engine := range engines() {
		fmt.Fprintf(table, "| `%s` | %d | `%s` | `%s` | `%s` |\n",
			engine.Type(), engine.Port(), engine.Username(), engine.Database(), engine.URI("HOST", engine.Username(), "PASSWORD"))
	}
	return table.String()
}

// parameters is the table of what spec.config may set.
func parameters(engine plan.Engine) string {
	table := &strings.Builder{}
	table.WriteString("| parameter | a change | values | default |\n|---|---|---|---|\n")
	for _, known := range engine.Parameters() {
		change := "restarts"
		if known.IsLive {
			change = "is live"
		}
		fmt.Fprintf(table, "| `%s` | %s | %s | %s |\n", known.Name, change, known.Allowed, standard(known))
	}
	return table.String()
}

// standard is a parameter's default, for people: for a switch it is a word,
// however the engine shows it.
func standard(known plan.Parameter) string {
	for _, word := range []string{"on", "off"} {
		if shown, isSwitch := known.Read(word); isSwitch && shown == known.Default {
			return "`" + word + "`"
		}
	}
	if known.Default == "" {
		return "empty"
	}
	return "`" + known.Default + "`"
}
