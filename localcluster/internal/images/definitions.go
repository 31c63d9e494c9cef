// SPDX-License-Identifier: Apache-2.0

// Package images makes container images, and the root file system of a node, from Debian packages: unpacked,
// never configured, so that no maintainer script runs. docs/localcluster.md says what an image's user may rely on.
package images

import (
	"fmt"
	"path"
	"strconv"
	"time"
)

// Definition is an image made from Debian packages.
type Definition struct {
	// Name is a short name for the cache, the lock file and messages.
	Name string
	// References are the upstream names under which a cluster finds the image.
	References []string
	// Suite is the Debian release that the packages come from.
	Suite string
	// Packages are unpacked with their dependencies.
	Packages []string
	// Without are folders and beginnings of file names that are left out of what the packages bring.
	Without []string
	// Main is the package whose upstream version must begin with Version, so that a reference doesn't lie.
	Main, Version string
	// Command is what runs by default, as user User in folder WorkingDir.
	Command    []string
	User       string
	WorkingDir string
	// UserName is what user and group 999 are called, as in the upstream image.
	UserName string
	// Path is a folder behind the others on the PATH.
	Path string
	// StopSignal is what a container runtime ends the image's containers with; empty means SIGTERM.
	StopSignal string
	// Files are added to what the packages bring.
	Files []File
}

// File is a file or, where Folder is set, a folder in an image.
type File struct {
	Path    string
	Mode    int64
	Owner   int
	Content string
	Folder  bool
}

// dataUser is the user that database images run as, as in the upstream images.
const dataUser = 999

// Images are the images that a cluster with nodes can be given. Of each engine there are two versions, so that going
// from one to the other can be tried; of MySQL one, since no Debian release but sid has it.
func Images() []Definition {
	return []Definition{
		{
			Name: "nginx", References: []string{"nginx:latest", "nginx:1.26"},
			Suite: "trixie", Packages: []string{"nginx"}, Main: "nginx", Version: "1.26.",
			Command: []string{"nginx", "-g", "daemon off;"}, WorkingDir: "/", UserName: "data",
			Files: []File{{Path: "etc/nginx/nginx.conf", Mode: 0o644, Content: nginxConfig}},
		},
		redis("7.0", "bookworm"),
		redis("8.0", "trixie"),
		valkey("8.1", "trixie"),
		valkey("9.1", "sid"),
		postgres("17", "trixie"),
		postgres("18", "sid"),
		mariadb("10.11", "bookworm"),
		mariadb("11.8", "trixie"),
		mysql("9.7", "sid"),
	}
}

func redis(version, suite string) Definition {
	return database("redis", version, Definition{
		Suite: suite, Packages: []string{"redis-server"}, Main: "redis-server",
		Command: []string{"redis-server"}, UserName: "redis", WorkingDir: "/data",
	})
}

func valkey(version, suite string) Definition {
	return database("valkey/valkey", version, Definition{
		Suite: suite, Packages: []string{"valkey-server"}, Main: "valkey-server",
		Command: []string{"valkey-server"}, UserName: "valkey", WorkingDir: "/data",
	})
}

func postgres(version, suite string) Definition {
	folder := "usr/lib/postgresql/" + version
	return database("postgres", version, Definition{
		Suite: suite, Packages: []string{"postgresql-" + version}, Main: "postgresql-" + version,
		// The compiler of queries, which Debian has in a package of its own from 18 on. The server does without it.
		Without: []string{"usr/lib/x86_64-linux-gnu/libLLVM", folder + "/lib/llvmjit", folder + "/lib/bitcode"},
		Command: []string{"postgres"}, UserName: "postgres", WorkingDir: "/", Path: "/" + folder + "/bin",
		StopSignal: "SIGINT",
	})
}

func mariadb(version, suite string) Definition {
	return database("mariadb", version, Definition{
		Suite: suite, Packages: []string{"mariadb-server-core", "mariadb-client"}, Main: "mariadb-server-core",
		Command: []string{"mariadbd"}, UserName: "mysql", WorkingDir: "/",
	})
}

func mysql(version, suite string) Definition {
	return database("mysql", version, Definition{
		Suite: suite, Packages: []string{"mysql-server-core", "mysql-client-core"}, Main: "mysql-server-core",
		Command: []string{"mysqld"}, UserName: "mysql", WorkingDir: "/",
		// Without it the server doesn't start, unless secure-file-priv is set.
		Files: []File{{Path: "var/lib/mysql-files", Mode: 0o750, Owner: dataUser, Folder: true}},
	})
}

// database completes the definition of a database's image.
func database(repository, version string, definition Definition) Definition {
	definition.Name = path.Base(repository) + "-" + version
	definition.References = []string{repository + ":" + version}
	definition.Version = version + "."
	definition.User = strconv.Itoa(dataUser)
	definition.Files = append(definition.Files, File{Path: "data", Mode: 0o755, Owner: dataUser, Folder: true})
	return definition
}

// nginxConfig serves the packaged welcome page on port 80, as the upstream image does.
const nginxConfig = `worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events {}
http {
	include /etc/nginx/mime.types;
	access_log /dev/stdout;
	server {
		listen 80;
		root /usr/share/nginx/html;
	}
}
`

// basePackages are the links of a merged /usr, the shell and the tools in the first layer of every image of a suite.
func basePackages() []string {
	return []string{"base-files", "dash", "coreutils", "grep", "sed", "util-linux"}
}

// Node's root file system: the container runtime, CNI plug-ins and what kubelet and kube-proxy call.
const nodeSuite = "bookworm"

func nodePackages() []string {
	return []string{"containerd", "runc", "containernetworking-plugins", "nftables", "mount", "util-linux", "e2fsprogs", "xfsprogs", "kmod", "dash", "coreutils", "grep", "sed"}
}

// unneeded is what no image keeps, as in Debian's own slim images: documentation and translations.
func unneeded() []string {
	return []string{"usr/share/doc", "usr/share/i18n", "usr/share/info", "usr/share/locale", "usr/share/man"}
}

// commonFiles are what the packages' maintainer scripts would have made. userName is that of user 999.
func commonFiles(userName string) []File {
	return []File{
		{Path: "etc/passwd", Mode: 0o644, Content: "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
			fmt.Sprintf("%[1]s:x:%[2]d:%[2]d:%[1]s:/data:/usr/sbin/nologin\n", userName, dataUser)},
		{Path: "etc/group", Mode: 0o644, Content: fmt.Sprintf("root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n%s:x:%d:\n", userName, dataUser)},
		{Path: "etc/nsswitch.conf", Mode: 0o644, Content: "passwd: files\ngroup: files\nhosts: files dns\n"},
		{Path: "proc", Mode: 0o555, Folder: true},
		{Path: "sys", Mode: 0o555, Folder: true},
		{Path: "run", Mode: 0o755, Folder: true},
		{Path: "tmp", Mode: 0o1777, Folder: true},
	}
}

// epoch is the time of everything in an image, so that the same packages give the same bytes.
func epoch() time.Time { return time.Unix(0, 0).UTC() }
