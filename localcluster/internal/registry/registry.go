// SPDX-License-Identifier: Apache-2.0

// Package registry serves image archives of the cache to the nodes of a cluster, in the protocol of image registries,
// so that a node gets an image when a pod first needs it, as from the registry that the image's name means.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry answers the requests that pull an image, and no others.
type Registry struct {
	// images are read when they are asked for the first time, by repository and tag.
	images map[image]func() (v1.Image, error)
}

// image is an image's name, such as library/redis and 8.0.
type image struct{ repository, tag string }

// New returns a registry of archives, by the reference of the image in each.
func New(archives map[string]string) (*Registry, error) {
	r := &Registry{images: map[image]func() (v1.Image, error){}}
	for reference, archive := range archives {
		tag, err := name.NewTag(reference)
		if err != nil {
			return nil, fmt.Errorf("image reference %q: %w", reference, err)
		}
		r.images[image{tag.RepositoryStr(), tag.TagStr()}] = sync.OnceValues(func() (v1.Image, error) {
			return tarball.ImageFromPath(archive, &tag)
		})
	}
	return r, nil
}

// Serve answers at the listener until ctx is done.
func (r *Registry) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // a pull that is cut short is no loss: the nodes end too
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve images: %w", err)
	}
	return nil
}

// ServeHTTP answers one request.
func (r *Registry) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	path, isAPI := strings.CutPrefix(request.URL.Path, "/v2/")
	if !isAPI || request.Method != http.MethodGet && request.Method != http.MethodHead {
		http.NotFound(response, request)
		return
	}
	if path == "" {
		return // the API's version is known by the path
	}
	found, err := r.find(path)
	if err != nil {
		log.Printf("%s %s: %v", request.Method, request.URL.Path, err)
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	if found == nil {
		http.NotFound(response, request)
		return
	}
	header := response.Header()
	header.Set("Content-Type", string(found.kind))
	header.Set("Content-Length", strconv.FormatInt(found.size, 10))
	header.Set("Docker-Content-Digest", found.digest.String())
	if request.Method == http.MethodHead {
		return
	}
	if err := found.write(response); err != nil {
		log.Printf("%s %s: %v", request.Method, request.URL.Path, err) // whoever asked sees that it is cut short
	}
}

// find returns what a path stands for, such as library/redis/manifests/8.0; nil if there is no such thing.
func (r *Registry) find(path string) (*content, error) {
	if repository, reference, ok := cutLast(path, "/manifests/"); ok {
		return r.findIn(repository, func(tag string, image v1.Image) (*content, error) {
			found, err := manifest(image)
			if err != nil || (tag != reference && found.digest.String() != reference) {
				return nil, err
			}
			return found, nil
		})
	}
	if repository, digest, ok := cutLast(path, "/blobs/"); ok {
		return r.findIn(repository, func(_ string, image v1.Image) (*content, error) { return blob(image, digest) })
	}
	return nil, nil
}

// findIn looks in all images of a repository.
func (r *Registry) findIn(repository string, look func(tag string, image v1.Image) (*content, error)) (*content, error) {
	for known, read := range r.images {
		if known.repository != repository {
			continue
		}
		image, err := read()
		if err != nil {
			return nil, fmt.Errorf("image %s:%s: %w", known.repository, known.tag, err)
		}
		if found, err := look(known.tag, image); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func cutLast(path, separator string) (before, after string, found bool) {
	index := strings.LastIndex(path, separator)
	if index < 0 {
		return "", "", false
	}
	return path[:index], path[index+len(separator):], true
}

// content is what a request is answered with.
type content struct {
	kind   types.MediaType
	digest v1.Hash
	size   int64
	open   func() (io.ReadCloser, error)
}

func (c *content) write(target io.Writer) error {
	reader, err := c.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(target, reader)
	return errors.Join(err, reader.Close())
}

// inMemory is a small content.
func inMemory(kind types.MediaType, digest v1.Hash, raw []byte) *content {
	return &content{kind, digest, int64(len(raw)), func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(raw))), nil
	}}
}

func manifest(image v1.Image) (*content, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	raw, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	kind, err := image.MediaType()
	return inMemory(kind, digest, raw), err
}

// blob returns the configuration or layer of that digest; nil if the image has none.
func blob(image v1.Image, digest string) (*content, error) {
	described, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if described.Config.Digest.String() == digest {
		raw, err := image.RawConfigFile()
		return inMemory(described.Config.MediaType, described.Config.Digest, raw), err
	}
	for _, layer := range described.Layers {
		if layer.Digest.String() != digest {
			continue
		}
		stored, err := image.LayerByDigest(layer.Digest)
		if err != nil {
			return nil, err
		}
		return &content{layer.MediaType, layer.Digest, layer.Size, stored.Compressed}, nil
	}
	return nil, nil
}
