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

// writeLayer writes into target what rootfs has and base has not, or has otherwise, and then files.
func writeLayer(target, rootfs, base string, files []File) (err error) {
	known := map[string]signature{}
	if base != "" {
		if err := eachEntry(base, func(header *tar.Header, content io.Reader) error {
			known[clean(header.Name)], err = sign(header, content)
			return err
		}); err != nil {
			return err
		}
	}
	added := map[string]bool{}
	for _, file := range files {
		added[clean(file.Path)] = true
	}
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	writer := tar.NewWriter(out)
	if err := copyChanged(writer, rootfs, known, added); err != nil {
		return err
	}
	for _, file := range files {
		if err := file.write(writer); err != nil {
			return err
		}
	}
	return writer.Close()
}

// copyChanged copies the entries of rootfs that aren't known in the same form, nor added by hand afterwards.
// It reads rootfs twice: contents are compared before their header is written.
func copyChanged(writer *tar.Writer, rootfs string, known map[string]signature, added map[string]bool) error {
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
		if name == "." || same[name] || added[name] {
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
