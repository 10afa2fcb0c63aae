// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var (
	at    = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	files = []File{{"kubectl-plumbline", []byte("binary"), 0o755}, {"LICENSE", []byte("text"), 0o644}}
)

func TestAnArchiveHoldsItsFilesAndIsTheSameAgain(t *testing.T) {
	cases := map[string]struct {
		pack   func([]File, time.Time) ([]byte, error)
		unpack func(*testing.T, []byte) []File
	}{
		"tar": {TarGzip, untar},
		"zip": {Zip, unzip},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			packed, err := tc.pack(files, at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(files, tc.unpack(t, packed)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			again, err := tc.pack(files, at.In(time.FixedZone("elsewhere", 3600)))
			if err != nil || !bytes.Equal(packed, again) {
				t.Errorf("a second archive differs (%v)", err)
			}
			later, err := tc.pack(files, at.Add(time.Hour))
			if err != nil || bytes.Equal(packed, later) {
				t.Errorf("the archive does not carry the time (%v)", err)
			}
		})
	}
}

func untar(t *testing.T, packed []byte) (out []File) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil || !header.ModTime.Equal(at) {
			t.Errorf("%s is of %s (%v)", header.Name, header.ModTime, err)
		}
		out = append(out, File{header.Name, content, header.FileInfo().Mode()})
	}
}

func unzip(t *testing.T, packed []byte) (out []File) {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range reader.File {
		opened, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(opened)
		if err != nil || !file.Modified.Equal(at) {
			t.Errorf("%s is of %s (%v)", file.Name, file.Modified, err)
		}
		out = append(out, File{file.Name, content, file.Mode()})
	}
	return out
}

func TestChecksums(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"b": "two", "a/c": "one"} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	sums, err := Checksums(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  a/c\n3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  b\n"
	if diff := cmp.Diff(want, string(FormatChecksums(sums))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKrewManifest(t *testing.T) {
	text, err := KrewManifest("v0.1.0", []KrewPlatform{{OS: "linux", Architecture: "arm64", URL: "https://example.test/p.tar.gz", SHA256: strings.Repeat("a", 64), Binary: "kubectl-plumbline"}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	spec, _ := got["spec"].(map[string]any)
	if got["apiVersion"] != "krew.googlecontainertools.github.com/v1alpha2" || got["kind"] != "Plugin" || spec["version"] != "v0.1.0" {
		t.Errorf("manifest %v", got)
	}
	if words, _ := spec["shortDescription"].(string); words == "" || len(words) > 50 || strings.HasSuffix(words, ".") {
		t.Errorf("short description %q: krew wants at most 50 characters without a full stop", words)
	}
	want := []any{map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"os": "linux", "arch": "arm64"}},
		"uri":      "https://example.test/p.tar.gz", "sha256": strings.Repeat("a", 64), "bin": "kubectl-plumbline",
	}}
	if diff := cmp.Diff(want, spec["platforms"]); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}
