// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"coolops.cn/database-manager/localcluster/internal/images"
)

// served starts a registry that has one image, and returns its address.
func served(t *testing.T, reference string) string {
	t.Helper()
	binary, archive := filepath.Join(t.TempDir(), "binary"), filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(binary, []byte("elf"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := images.BinaryImage{Reference: reference, Binary: binary, Command: "binary"}
	if err := image.WriteArchive(archive); err != nil {
		t.Fatal(err)
	}
	registry, err := New(map[string]string{reference: archive, "library/broken:1": archive + ".none"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	return server.URL
}

// answer is a response that was read.
type answer struct {
	code    int
	length  int64
	header  http.Header
	content []byte
}

func ask(t *testing.T, method, address string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.ContentLength, response.Header, content}
}

func TestAnImageIsPulled(t *testing.T) {
	for reference, repository := range map[string]string{"redis:8.0": "library/redis", "valkey/valkey:8.0": "valkey/valkey"} {
		address := served(t, reference) + "/v2/"
		if version := ask(t, http.MethodGet, address); version.code != http.StatusOK {
			t.Errorf("the version is answered by %d", version.code)
		}
		head := ask(t, http.MethodHead, address+repository+"/manifests/8.0")
		digest := head.header.Get("Docker-Content-Digest")
		whole := ask(t, http.MethodGet, address+repository+"/manifests/"+digest)
		if head.code != http.StatusOK || head.length != int64(len(whole.content)) || digestOf(whole.content) != digest {
			t.Fatalf("the manifest's head is %d, %d bytes, %s; the manifest is %d, %d bytes, %s",
				head.code, head.length, digest, whole.code, len(whole.content), digestOf(whole.content))
		}
		var manifest v1.Manifest
		if err := json.Unmarshal(whole.content, &manifest); err != nil {
			t.Fatal(err)
		}
		if string(manifest.MediaType) != whole.header.Get("Content-Type") {
			t.Errorf("a manifest of type %s is sent as %s", manifest.MediaType, whole.header.Get("Content-Type"))
		}
		for _, part := range append(manifest.Layers, manifest.Config) {
			content := ask(t, http.MethodGet, address+repository+"/blobs/"+part.Digest.String()).content
			if digestOf(content) != part.Digest.String() || int64(len(content)) != part.Size {
				t.Errorf("a part of %d bytes and %s has %d and %s", part.Size, part.Digest, len(content), digestOf(content))
			}
		}
	}
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	address := served(t, "redis:8.0")
	for sentence, row := range map[string]struct {
		method, path string
		want         int
	}{
		"another image":        {http.MethodHead, "/v2/library/busybox/manifests/1", http.StatusNotFound},
		"another tag":          {http.MethodGet, "/v2/library/redis/manifests/9", http.StatusNotFound},
		"another digest":       {http.MethodGet, "/v2/library/redis/manifests/sha256:00", http.StatusNotFound},
		"another layer":        {http.MethodGet, "/v2/library/redis/blobs/sha256:00", http.StatusNotFound},
		"another request":      {http.MethodGet, "/v2/library/redis/tags/list", http.StatusNotFound},
		"a page":               {http.MethodGet, "/", http.StatusNotFound},
		"a push":               {http.MethodPost, "/v2/library/redis/blobs/uploads/", http.StatusNotFound},
		"an archive that went": {http.MethodGet, "/v2/library/broken/manifests/1", http.StatusInternalServerError},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := ask(t, row.method, address+row.path).code; got != row.want {
				t.Errorf("it is answered by %d", got)
			}
		})
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- registry.Serve(ctx, listener) }()
	if got := ask(t, http.MethodGet, "http://"+listener.Addr().String()+"/v2/").code; got != http.StatusOK {
		t.Errorf("it answers %d", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestABadReferenceIsRefused(t *testing.T) {
	if _, err := New(map[string]string{"Redis:8": "archive"}); err == nil {
		t.Error("it is accepted")
	}
}
