// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
	"github.com/plumbline-dev/plumbline/hack/release/internal/bill"
	"github.com/plumbline-dev/plumbline/hack/release/internal/compile"
)

func digestOf(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// filesOf reads all files of an image by name.
func filesOf(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	files := map[string]string{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

// TestACommandIsCompiledForAnotherArchitecture compiles the smallest command twice, for a
// machine that this one may not be: the only real compilation of these tests.
func TestACommandIsCompiledForAnotherArchitecture(t *testing.T) {
	p := compile.Platform{OS: "linux", Architecture: "arm64"}
	var binaries []string
	for range 2 {
		folder := t.TempDir()
		compiler := compile.Go{Root: root, Version: "v0.3.0", Revision: strings.Repeat("c", 40), Progress: io.Discard}
		if err := compiler.Compile(t.Context(), p, folder, "redirect"); err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, compile.Binary(folder, p, "redirect"))
	}
	first, err := os.ReadFile(binaries[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(binaries[1])
	if err != nil || string(first) != string(second) {
		t.Errorf("a second build differs (%v)", err)
	}
	if err := errors.Join(image.CheckStatic(binaries[0]), image.CheckArchitecture(binaries[0], "arm64")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(first), "v0.3.0") || !strings.Contains(string(first), strings.Repeat("c", 40)) {
		t.Error("version and commit are not stamped into the binary")
	}
	here, err := filepath.Abs(root)
	if err != nil || strings.Contains(string(first), here) {
		t.Errorf("the binary names the folder %s (%v)", here, err)
	}
	checkBill(t, p, binaries[0])
}

// checkBill reads the modules of a real binary, and their licenses.
func checkBill(t *testing.T, p compile.Platform, binary string) {
	t.Helper()
	modules, err := bill.ReadModules(binary)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(modules, func(m bill.Module) bool { return m.Path == "github.com/google/nftables" && m.Sum != "" }) {
		t.Errorf("modules %v", modules)
	}
	packages, err := bill.ReadPackages(t.Context(), root, compile.Environment(p), "redirect")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := bill.ReadCache(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	licenses, err := cache.Licenses(modules, packages)
	if err != nil || len(licenses) != len(modules) {
		t.Errorf("%d licenses of %d modules (%v)", len(licenses), len(modules), err)
	}
}
