// SPDX-License-Identifier: Apache-2.0

// Package images makes container images, and the root file system of a node, from Debian packages: unpacked,
// never configured, so that no maintainer script runs. docs/localcluster.md says what an image's user may rely on.
package images

import "time"

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
	// Main is the package whose upstream version must begin with Version, so that a reference doesn't lie.
	Main, Version string
	// Command is what runs by default, as user User in folder WorkingDir.
	Command    []string
	User       string
	WorkingDir string
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

// Images are the images that a cluster with nodes is given.
func Images() []Definition {
	return []Definition{
		{
			Name: "redis", References: []string{"redis:8.0"},
			Suite: "trixie", Packages: []string{"redis-server"}, Main: "redis-server", Version: "8.0.",
			Command: []string{"redis-server"}, User: "999", WorkingDir: "/data",
			Files: []File{{Path: "data", Mode: 0o755, Owner: dataUser, Folder: true}},
		},
		{
			Name: "nginx", References: []string{"nginx:latest", "nginx:1.26"},
			Suite: "trixie", Packages: []string{"nginx"}, Main: "nginx", Version: "1.26.",
			Command: []string{"nginx", "-g", "daemon off;"}, WorkingDir: "/",
			Files: []File{{Path: "etc/nginx/nginx.conf", Mode: 0o644, Content: nginxConfig}},
		},
	}
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
	return []string{"containerd", "runc", "containernetworking-plugins", "nftables", "mount", "util-linux", "e2fsprogs", "kmod", "dash", "coreutils", "grep", "sed"}
}

// commonFiles are what the packages' maintainer scripts would have made.
func commonFiles() []File {
	return []File{
		{Path: "etc/passwd", Mode: 0o644, Content: "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\ndata:x:999:999:data:/data:/usr/sbin/nologin\n"},
		{Path: "etc/group", Mode: 0o644, Content: "root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\ndata:x:999:\n"},
		{Path: "etc/nsswitch.conf", Mode: 0o644, Content: "passwd: files\ngroup: files\nhosts: files dns\n"},
		{Path: "proc", Mode: 0o555, Folder: true},
		{Path: "sys", Mode: 0o555, Folder: true},
		{Path: "run", Mode: 0o755, Folder: true},
		{Path: "tmp", Mode: 0o1777, Folder: true},
	}
}

// epoch is the time of everything in an image, so that the same packages give the same bytes.
func epoch() time.Time { return time.Unix(0, 0).UTC() }
