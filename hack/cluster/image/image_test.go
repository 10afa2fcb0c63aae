// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"pgregory.net/rapid"
)

const tag = "docker.io/plumbline/thing:v1"

func file(t *testing.T, name, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := errors.Join(os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

type tarEntry struct {
	Name, Link, Content string
	Mode                int64
	Owner               int
	Kind                byte
}

func unpack(t *testing.T, layer []byte) (entries []tarEntry) {
	t.Helper()
	reader := tar.NewReader(bytes.NewReader(layer))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s has the time %s", header.Name, header.ModTime)
		}
		entries = append(entries, tarEntry{header.Name, header.Linkname, string(content), header.Mode, header.Uid, header.Typeflag})
	}
}

func TestLayer(t *testing.T) {
	layer, err := layerTar([]Entry{
		{Path: "/usr/bin/tool", Source: file(t, "tool", "binary", 0o700), Mode: 0o755},
		{Path: "/etc/passwd", Data: []byte("users")},
		{Path: "/usr/bin/alias", Link: "tool"},
		{Path: "/tmp", Folder: true, Mode: fs.ModeSticky | 0o777},
		{Path: "/data", Folder: true, Owner: NonRoot},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []tarEntry{
		{Name: "data/", Mode: 0o755, Owner: NonRoot, Kind: tar.TypeDir},
		{Name: "etc/", Mode: 0o755, Kind: tar.TypeDir},
		{Name: "etc/passwd", Content: "users", Mode: 0o644, Kind: tar.TypeReg},
		{Name: "tmp/", Mode: 0o1777, Kind: tar.TypeDir},
		{Name: "usr/", Mode: 0o755, Kind: tar.TypeDir},
		{Name: "usr/bin/", Mode: 0o755, Kind: tar.TypeDir},
		{Name: "usr/bin/alias", Link: "tool", Mode: 0o644, Kind: tar.TypeSymlink},
		{Name: "usr/bin/tool", Content: "binary", Mode: 0o755, Kind: tar.TypeReg},
	}
	if diff := cmp.Diff(want, unpack(t, layer)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestLayerRefuses(t *testing.T) {
	cases := map[string]struct {
		entries []Entry
		want    string
	}{
		"a relative path":              {[]Entry{{Path: "etc/passwd"}}, "absolute"},
		"a path that is the root":      {[]Entry{{Path: "/a/.."}}, "absolute path below /"},
		"one path twice":               {[]Entry{{Path: "/a"}, {Path: "/b/../a"}}, "given twice"},
		"a file below a file":          {[]Entry{{Path: "/a"}, {Path: "/a/b"}}, "not a folder"},
		"a source that does not exist": {[]Entry{{Path: "/a", Source: "/nonexistent/x"}}, "no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := layerTar(tc.entries); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestDigestIsReproducible: neither the order in which entries are given nor the
// mode and time of their sources change the digest; any change of content does.
func TestDigestIsReproducible(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		entries := rapid.SliceOfNDistinct(rapid.Custom(func(r *rapid.T) Entry {
			return Entry{
				Path: "/" + rapid.StringMatching(`[a-c]{1,3}`).Draw(r, "path") + ".txt",
				Data: rapid.SliceOf(rapid.Byte()).Draw(r, "data"),
			}
		}), 1, 6, func(e Entry) string { return e.Path }).Draw(r, "entries")
		shuffled := rapid.Permutation(entries).Draw(r, "shuffled")
		first, second := digest(r, entries), digest(r, shuffled)
		if first != second {
			r.Fatalf("the order changes the digest: %s, %s", first, second)
		}
		shuffled[0].Data = append(bytes.Clone(shuffled[0].Data), 'x')
		if changed := digest(r, shuffled); changed == first {
			r.Fatal("a change of content does not change the digest")
		}
	})
	one := Static("x", file(t, "x", "same", 0o700), tag, nil)
	two := Static("x", file(t, "x", "same", 0o755), tag, nil)
	if a, b := digest(t, one.Entries), digest(t, two.Entries); a != b {
		t.Errorf("the mode of the source changes the digest: %s, %s", a, b)
	}
}

func digest(t interface{ Fatal(...any) }, entries []Entry) v1.Hash {
	image, err := Build(Spec{Tag: tag, Entries: entries, User: NonRoot})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func archive(t *testing.T, spec Spec) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "x.tar")
	if _, err := WriteArchive(spec, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestArchiveOfAStaticBinary(t *testing.T) {
	extra, err := ParseExtra(file(t, "ca", "certificates", 0o600) + ":/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	out := archive(t, Static("thing", file(t, "thing", "binary", 0o600), tag, []Entry{extra}))
	name, image, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	if name.Name() != "index."+tag {
		t.Errorf("tag %s, want %s", name.Name(), tag)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("not a valid image: %v", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{User: "65532:65532", Entrypoint: []string{"/thing"}, Env: []string{searchPath}, WorkingDir: "/"}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("archive mode %v (%v)", info.Mode(), err)
	}
}

func TestArchiveRefusesAShortName(t *testing.T) {
	for _, short := range []string{"thing", "plumbline/thing:v1", "docker.io/plumbline/thing", "docker.io/plumbline/Thing:v1"} {
		if _, err := WriteArchive(Spec{Tag: short}, filepath.Join(t.TempDir(), "x.tar")); err == nil {
			t.Errorf("the name %q was accepted; a pod could not name the image", short)
		}
	}
}

func TestFailedArchiveLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	_, err := WriteArchive(Static("x", "/nonexistent/x", tag, nil), filepath.Join(folder, "x.tar"))
	entries, readErr := os.ReadDir(folder)
	if err == nil || readErr != nil || len(entries) > 0 {
		t.Errorf("error %v, left %v (%v)", err, entries, readErr)
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	out := archive(t, Static("thing", file(t, "thing", strings.Repeat("binary", 1000), 0o755), tag, nil))
	host := strings.TrimPrefix(server.URL, "http://")
	reference, err := Push(t.Context(), out, Destination{Registry: host + "/team", PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := host + "/team/plumbline/thing:v1"; reference.Name() != want {
		t.Errorf("pushed as %s, want %s", reference.Name(), want)
	}
	image, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("what the registry serves is not valid: %v", err)
	}
}

func TestPushErrors(t *testing.T) {
	if _, err := Push(t.Context(), filepath.Join(t.TempDir(), "absent.tar"), Destination{Registry: "example.test"}); err == nil {
		t.Error("a missing archive was pushed")
	}
	if _, err := Push(t.Context(), file(t, "x.tar", "no tar", 0o644), Destination{Registry: "example.test"}); err == nil {
		t.Error("a file that is no archive was pushed")
	}
	out := archive(t, Static("thing", file(t, "thing", "b", 0o755), tag, nil))
	if _, err := Push(t.Context(), out, Destination{Registry: "not a registry"}); err == nil || !strings.Contains(err.Error(), "not a registry") {
		t.Errorf("a malformed registry gives %v", err)
	}
}

func TestRelocate(t *testing.T) {
	for _, tc := range []struct{ image, registry, want string }{
		{"index.docker.io/plumbline/webhook:dev", "ghcr.io/me", "ghcr.io/me/plumbline/webhook:dev"},
		{"docker.io/plumbline/webhook:dev", "localhost:5000/", "localhost:5000/plumbline/webhook:dev"},
	} {
		if got := Relocate(tc.image, tc.registry); got != tc.want {
			t.Errorf("Relocate(%q, %q) = %q, want %q", tc.image, tc.registry, got, tc.want)
		}
	}
}

func TestParseLibraries(t *testing.T) {
	const output = `	linux-vdso.so.1 (0x00007ffd2a5f0000)
	libssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f1a)
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1b)
	/lib64/ld-linux-x86-64.so.2 (0x00007f1c)
`
	got, err := parseLibraries(output)
	want := []string{"/lib/x86_64-linux-gnu/libssl.so.3", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("libraries (%v) (-want +got):\n%s", err, diff)
	}
	if _, err := parseLibraries("\tlibjemalloc.so.2 => not found\n"); err == nil || !strings.Contains(err.Error(), "libjemalloc.so.2") {
		t.Errorf("a missing library gives %v", err)
	}
}

func TestParseExtra(t *testing.T) {
	got, err := ParseExtra("a/b:/etc//x")
	if diff := cmp.Diff(Entry{Path: "/etc/x", Source: "a/b"}, got); err != nil || diff != "" {
		t.Errorf("ParseExtra (%v) (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "a", ":/x", "a:b", "a:"} {
		if _, err := ParseExtra(bad); err == nil {
			t.Errorf("ParseExtra(%q) succeeded", bad)
		}
	}
}

func TestRedisImageIsComplete(t *testing.T) {
	spec := Redis(tag, []string{"/lib/a.so", "/lib/b.so"})
	paths := map[string]bool{}
	for _, entry := range spec.Entries {
		paths[entry.Path] = true
	}
	for _, want := range append(RedisPrograms(), "/lib/a.so", "/lib/b.so", "/data", "/tmp", "/etc/passwd") {
		if !paths[want] {
			t.Errorf("the image lacks %s", want)
		}
	}
	if spec.User != NonRoot || spec.Entrypoint[0] != redisServer {
		t.Errorf("user %d, entry point %v", spec.User, spec.Entrypoint)
	}
}

func TestAnImageOfARegistryIsCompressedAndSaysWhatItIs(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := Static("thing", file(t, "thing", strings.Repeat("binary", 1000), 0o755), tag, nil)
	spec.Architecture, spec.Created, spec.Compressed = "arm64", created, true
	spec.Labels = map[string]string{"org.opencontainers.image.version": "v1"}
	image, err := Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || !config.Created.Equal(created) || config.Config.Labels["org.opencontainers.image.version"] != "v1" {
		t.Errorf("config %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v), want 1", len(layers), err)
	}
	if size, err := layers[0].Size(); err != nil || size > 3000 {
		t.Errorf("the layer has %d bytes (%v): it is not compressed", size, err)
	}
}
