// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// signature identifies a tar entry by all that a container can see of it.
type signature struct {
	kind           byte
	mode, size     int64
	uid, gid       int
	link           string
	content        [sha256.Size]byte
	major, minor   int64
	extendedHeader string
}

// layerChange is what makes a layer other than what packages bring.
type layerChange struct {
	// without are folders and beginnings of file names that are left out.
	without []string
	// files are added, and win over the packages'.
	files []File
}

// leavesOut tells whether an entry of the packages isn't taken.
func (c layerChange) leavesOut(name string) bool {
	return slices.ContainsFunc(c.without, func(beginning string) bool { return strings.HasPrefix(name, beginning) }) ||
		slices.ContainsFunc(c.files, func(file File) bool { return clean(file.Path) == name })
}

// writeLayer writes into target what rootfs has and base has not, or has otherwise, as change says.
func writeLayer(target, rootfs, base string, change layerChange) (err error) {
	known := map[string]signature{}
	if base != "" {
		if err := eachEntry(base, func(header *tar.Header, content io.Reader) error {
			known[clean(header.Name)], err = sign(header, content)
			return err
		}); err != nil {
			return err
		}
	}
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	writer := tar.NewWriter(out)
	if err := copyChanged(writer, rootfs, known, change); err != nil {
		return err
	}
	for _, file := range change.files {
		if err := file.write(writer); err != nil {
			return err
		}
	}
	return writer.Close()
}

// copyChanged copies the entries of rootfs that aren't known in the same form, nor left out by change.
// It reads rootfs twice: contents are compared before their header is written.
func copyChanged(writer *tar.Writer, rootfs string, known map[string]signature, change layerChange) error {
	same := map[string]bool{}
	if err := eachEntry(rootfs, func(header *tar.Header, content io.Reader) error {
		name := clean(header.Name)
		before, ok := known[name]
		if !ok {
			return nil
		}
		now, err := sign(header, content)
		same[name] = now == before
		return err
	}); err != nil {
		return err
	}
	return eachEntry(rootfs, func(header *tar.Header, content io.Reader) error {
		name := clean(header.Name)
		if name == "." || same[name] || change.leavesOut(name) {
			return nil
		}
		header.Name = name
		if header.Typeflag == tar.TypeDir {
			header.Name += "/"
		}
		header.Linkname = hardLinkName(header)
		header.ModTime, header.AccessTime, header.ChangeTime = epoch(), epoch(), epoch()
		header.Format = tar.FormatPAX
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.Copy(writer, content)
		return err
	})
}

func hardLinkName(header *tar.Header) string {
	if header.Typeflag == tar.TypeLink {
		return clean(header.Linkname)
	}
	return header.Linkname
}

func sign(header *tar.Header, content io.Reader) (signature, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return signature{}, err
	}
	result := signature{
		kind: header.Typeflag, mode: header.Mode, size: header.Size, uid: header.Uid, gid: header.Gid, link: header.Linkname,
		major: header.Devmajor, minor: header.Devminor, extendedHeader: header.PAXRecords["SCHILY.xattr.security.capability"],
	}
	sum.Sum(result.content[:0])
	return result, nil
}

func eachEntry(archive string, do func(*tar.Header, io.Reader) error) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
		if err := do(header, reader); err != nil {
			return err
		}
	}
}

func clean(name string) string { return strings.TrimPrefix(path.Clean(name), "/") }

func (f File) write(writer *tar.Writer) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Path, Mode: f.Mode, Uid: f.Owner, Gid: f.Owner, Size: int64(len(f.Content)),
		ModTime: epoch(), Format: tar.FormatPAX,
	}
	if f.Folder {
		header.Typeflag, header.Name = tar.TypeDir, f.Path+"/"
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(writer, f.Content)
	return err
}

// writeFiles writes a layer of files only.
func writeFiles(target string, files []File) (err error) {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	writer := tar.NewWriter(out)
	for _, file := range files {
		if err := file.write(writer); err != nil {
			return err
		}
	}
	return writer.Close()
}
