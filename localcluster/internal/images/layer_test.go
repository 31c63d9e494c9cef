// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// file builds a file of an archive, as mmdebstrap writes them.
func file(name, content string, change ...func(*tar.Header)) tarEntry {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(1000, 0)}
	for _, do := range change {
		do(header)
	}
	return tarEntry{header, content}
}

func folder(name string) tarEntry {
	return tarEntry{&tar.Header{Typeflag: tar.TypeDir, Name: "./" + name + "/", Mode: 0o755}, ""}
}

func link(kind byte, name, target string) tarEntry {
	return tarEntry{&tar.Header{Typeflag: kind, Name: "./" + name, Linkname: target, Mode: 0o777}, ""}
}

type tarEntry struct {
	header  *tar.Header
	content string
}

func writeTar(t *testing.T, entries ...tarEntry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive.tar")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writer := tar.NewWriter(out)
	for _, e := range entries {
		if err := writer.WriteHeader(e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// list tells what is in a layer: name, kind of link and content.
func list(t *testing.T, path string) []string {
	t.Helper()
	var entries []string
	if err := eachEntry(path, func(header *tar.Header, content io.Reader) error {
		all, err := io.ReadAll(content)
		entry := header.Name
		switch {
		case header.Linkname != "":
			entry += " -> " + header.Linkname
		case header.Typeflag == tar.TypeReg:
			entry += "=" + string(all)
		}
		entries = append(entries, entry)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestWriteLayer(t *testing.T) {
	executable := func(header *tar.Header) { header.Mode = 0o755 }
	owned := func(header *tar.Header) { header.Uid = 999 }
	later := func(header *tar.Header) { header.ModTime = time.Unix(2000, 0) }
	capable := func(header *tar.Header) {
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "x"}
	}
	for sentence, row := range map[string]struct {
		base, rootfs []tarEntry
		without      []string
		files        []File
		want         []string
	}{
		"what the base has is left out": {
			base: []tarEntry{folder("etc"), file("etc/a", "1")}, rootfs: []tarEntry{folder("etc"), file("etc/a", "1"), file("etc/b", "2")},
			want: []string{"etc/b=2"},
		},
		"only a later time is no change": {base: []tarEntry{file("a", "1")}, rootfs: []tarEntry{file("a", "1", later)}},
		"a changed content is kept":      {base: []tarEntry{file("a", "1")}, rootfs: []tarEntry{file("a", "2")}, want: []string{"a=2"}},
		"a changed mode is kept":         {base: []tarEntry{file("a", "1")}, rootfs: []tarEntry{file("a", "1", executable)}, want: []string{"a=1"}},
		"a changed owner is kept":        {base: []tarEntry{file("a", "1")}, rootfs: []tarEntry{file("a", "1", owned)}, want: []string{"a=1"}},
		"a changed capability is kept":   {base: []tarEntry{file("a", "1")}, rootfs: []tarEntry{file("a", "1", capable)}, want: []string{"a=1"}},
		"a link that points elsewhere is kept": {
			base: []tarEntry{link(tar.TypeSymlink, "l", "../a")}, rootfs: []tarEntry{link(tar.TypeSymlink, "l", "../b")},
			want: []string{"l -> ../b"},
		},
		"a hard link names its target as the layer does": {
			rootfs: []tarEntry{file("a", "1"), link(tar.TypeLink, "b", "./a")}, want: []string{"a=1", "b -> a"},
		},
		"an added file wins over the packages'": {
			rootfs: []tarEntry{file("etc/passwd", "theirs")}, files: []File{{Path: "etc/passwd", Content: "ours"}}, want: []string{"etc/passwd=ours"},
		},
		"what is unneeded is left out": {
			rootfs:  []tarEntry{folder("usr/share/doc"), file("usr/share/doc/a", "1"), file("usr/lib/libLLVM.so.19", "2"), file("usr/lib/libc", "3")},
			without: []string{"usr/share/doc", "usr/lib/libLLVM"}, want: []string{"usr/lib/libc=3"},
		},
		"an added folder is one":      {files: []File{{Path: "data", Folder: true}}, want: []string{"data/"}},
		"the root itself is left out": {rootfs: []tarEntry{folder(".")}},
	} {
		t.Run(sentence, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "layer.tar")
			if err := writeLayer(target, writeTar(t, row.rootfs...), writeTar(t, row.base...), layerChange{row.without, row.files}); err != nil {
				t.Fatal(err)
			}
			if got := list(t, target); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestTheSamePackagesGiveTheSameBytes(t *testing.T) {
	var layers, archives [2][]byte
	for i := range layers {
		later := func(header *tar.Header) { header.ModTime = time.Now().Add(time.Duration(i) * time.Hour) }
		rootfs := writeTar(t, folder("usr"), file("usr/a", "1", later))
		dir := t.TempDir()
		layer, archive := filepath.Join(dir, "layer.tar"), filepath.Join(dir, "image.tar")
		if err := writeLayer(layer, rootfs, "", layerChange{files: commonFiles("redis")}); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(dir, "binary")
		if err := os.WriteFile(binary, []byte("elf"), 0o755); err != nil {
			t.Fatal(err)
		}
		image := BinaryImage{Reference: "localhost/test:1", Binary: binary, Command: "binary", User: "65532"}
		if err := image.WriteArchive(archive); err != nil {
			t.Fatal(err)
		}
		var err, archiveErr error
		layers[i], err = os.ReadFile(layer)
		archives[i], archiveErr = os.ReadFile(archive)
		if err := errors.Join(err, archiveErr); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(layers[0], layers[1]) {
		t.Error("layers differ")
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("archives differ")
	}
}

func TestABrokenArchiveIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.tar")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 1024), 0o644); err != nil {
		t.Fatal(err)
	}
	err := writeLayer(filepath.Join(t.TempDir(), "layer.tar"), path, "", layerChange{})
	if err == nil || !bytes.Contains(fmt.Append(nil, err), []byte(path)) {
		t.Errorf("error is %v", err)
	}
}
