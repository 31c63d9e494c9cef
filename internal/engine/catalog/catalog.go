// SPDX-License-Identifier: Apache-2.0

// Package catalog is the one table of engines, versions and images.
package catalog

import "coolops.cn/database-manager/pkg/apis/coolops/v1alpha1"

// Release is a version of an engine that the operator knows.
type Release struct {
	Engine v1alpha1.DatabaseType
	// Version is what spec.version says: the part of the version that stays the
	// same while upstream publishes corrections.
	Version string
	// Image is the upstream image.
	Image string
}

// Releases returns the table: of each engine, oldest first. The last one of an
// engine is what a new database runs that names no version; a database that
// exists keeps what it was created with. A release stays here as long as
// databases may run it.
func Releases() []Release {
	return []Release{
		{v1alpha1.DatabaseTypeMySQL, "9.7", "mysql:9.7"},
		{v1alpha1.DatabaseTypeMariaDB, "10.11", "mariadb:10.11"},
		{v1alpha1.DatabaseTypeMariaDB, "11.8", "mariadb:11.8"},
		{v1alpha1.DatabaseTypePostgreSQL, "17", "postgres:17"},
		{v1alpha1.DatabaseTypePostgreSQL, "18", "postgres:18"},
		{v1alpha1.DatabaseTypeRedis, "7.0", "redis:7.0"},
		{v1alpha1.DatabaseTypeRedis, "8.0", "redis:8.0"},
		{v1alpha1.DatabaseTypeValkey, "8.1", "valkey/valkey:8.1"},
		{v1alpha1.DatabaseTypeValkey, "9.1", "valkey/valkey:9.1"},
	}
}

// Of returns the releases of one engine, oldest first.
func Of(engine v1alpha1.DatabaseType) []Release {
	var releases []Release
	for _, release := range Releases() {
		if release.Engine == engine {
			releases = append(releases, release)
		}
	}
	return releases
}

// Engine is the part of an engine that answers questions about versions. It
// is embedded in each.
type Engine struct{ Name v1alpha1.DatabaseType }

// Type returns the engine's value of spec.dbtype.
func (e Engine) Type() v1alpha1.DatabaseType { return e.Name }

// DefaultVersion returns what a new database runs that names no version.
func (e Engine) DefaultVersion() string {
	releases := Of(e.Name)
	return releases[len(releases)-1].Version
}

// Versions lists the versions that are known, oldest first.
func (e Engine) Versions() []string {
	var names []string
	for _, release := range Of(e.Name) {
		names = append(names, release.Version)
	}
	return names
}

// Image returns the upstream image of a version; false if it isn't known.
func (e Engine) Image(version string) (string, bool) {
	for _, release := range Of(e.Name) {
		if release.Version == version {
			return release.Image, true
		}
	}
	return "", false
}
