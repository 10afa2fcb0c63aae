// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/plumbline-dev/plumbline/hack/release/internal/archive"
	"github.com/plumbline-dev/plumbline/hack/release/internal/bill"
	"github.com/plumbline-dev/plumbline/hack/release/internal/chart"
	"github.com/plumbline-dev/plumbline/hack/release/internal/compile"
	"github.com/plumbline-dev/plumbline/hack/release/internal/oci"
	"github.com/plumbline-dev/plumbline/hack/release/internal/source"
)

const root = "../../../.."

// helm finds Helm 4. That there is none is an error, and no reason to skip.
func helm(t *testing.T) chart.Helm {
	t.Helper()
	binary := os.Getenv("HELM")
	if binary == "" {
		found, err := exec.LookPath("helm")
		if err != nil {
			t.Fatal("no Helm found: `make chart` builds one; or set HELM to the path of a Helm 4")
		}
		binary = found
	}
	return chart.Helm{Binary: binary}
}

// tiny compiles one program without imports for each architecture of images, once for all
// tests. It stands for every command: compiling those takes minutes.
var tiny = sync.OnceValues(func() (map[string]string, error) {
	folder, err := os.MkdirTemp("", "plumbline-tiny-")
	if err != nil {
		return nil, err
	}
	files := map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() { println(version) }\n\nvar version string\n"}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	binaries := map[string]string{}
	for _, p := range compile.ImagePlatforms() {
		out := filepath.Join(folder, p.Architecture)
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w -buildid=", "-o", out, ".")
		command.Dir, command.Env = folder, append(os.Environ(), compile.Environment(p)...)
		if output, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, output)
		}
		binaries[p.Architecture] = out
	}
	return binaries, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if binaries, err := tiny(); err == nil {
		for _, binary := range binaries {
			_ = os.RemoveAll(filepath.Dir(binary))
		}
	}
	os.Exit(status)
}

// compileTiny copies the tiny program to the places of the commands. The plugin for
// another system is that for Linux: only its name and its archive are looked at.
func compileTiny(_ context.Context, p compile.Platform, folder string, commands ...string) error {
	binaries, err := tiny()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binaries[p.Architecture])
	if err != nil {
		return err
	}
	for _, command := range commands {
		path := compile.Binary(folder, p, command)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// options release the chart of the repository with tiny programs.
func options(t *testing.T, address, version string) Options {
	t.Helper()
	parsed, err := source.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(filepath.Join(root, "charts", "plumbline", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := chart.UpstreamImages(values)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Version: parsed, Commit: source.Commit{Hash: strings.Repeat("c", 40), Time: time.Unix(1767323045, 0)},
		Root: root, Dist: t.TempDir(), Registry: oci.Registry{Address: address, PlainHTTP: true}, Downloads: "https://example.test/" + version,
		Builder: "https://example.test/builder", GoVersion: runtime.Version(), Helm: helm(t), Upstream: upstream,
		Compile: compileTiny, Cache: bill.Cache{Toolchain: toolchain(t)}, Progress: io.Discard,
		Packages: func(context.Context, compile.Platform, ...string) (map[string][]string, error) { return nil, nil },
	}
}

// toolchain is a GOROOT with a license alone.
func toolchain(t *testing.T) string {
	t.Helper()
	license, err := os.ReadFile(filepath.Join("..", "bill", "testdata", "MIT.txt"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "LICENSE"), license, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func serveRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/team/plumbline"
}

func makeRelease(t *testing.T, o Options) *Release {
	t.Helper()
	release, err := Make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// TestAPushedReleaseIsWhatWasMade pulls everything back, as a node and as Helm would.
func TestAPushedReleaseIsWhatWasMade(t *testing.T) {
	address := serveRegistry(t)
	o := options(t, address, "v0.3.0")
	release := makeRelease(t, o)
	if err := Push(t.Context(), o, release); err != nil {
		t.Fatal(err)
	}
	pushed := map[string]bool{}
	for name, made := range release.Images {
		reference, err := o.Registry.Reference(name, "v0.3.0")
		if err != nil {
			t.Fatal(err)
		}
		pushed[reference.Name()] = true
		pulled, err := remote.Index(reference)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(pulled); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := digestOf(t, pulled), digestOf(t, made); got != want {
			t.Errorf("%s: pulled %s, made %s", name, got, want)
		}
		for _, p := range compile.ImagePlatforms() {
			checkImage(t, o, name, p)
		}
	}
	packed := pullChart(t, o)
	if made, err := os.ReadFile(release.Chart); err != nil || string(made) != packed {
		t.Errorf("the pulled chart is not the one that was made (%v)", err)
	}
	named := renderImages(t, o, "--set", "mesh.enabled=true", "--set", "gateway.enabled=true", "--set", "executor.enabled=true", "--set", "selftest.enabled=true")
	for _, u := range o.Upstream {
		pushed[u.Reference()] = true
	}
	agent, err := o.Registry.Reference("agent", "v0.3.0")
	if err != nil {
		t.Fatal(err)
	}
	named[agent.Name()] = true // the pods of users name it, and the chart has none of these
	if diff := cmp.Diff(pushed, named); diff != "" {
		t.Errorf("images that are pushed, and that the chart names (-pushed +named):\n%s", diff)
	}
	if err := Push(t.Context(), o, release); err != nil {
		t.Errorf("a second push of the same release fails: %v", err)
	}
}

// checkImage pulls the image of one platform and compares the program in it.
func checkImage(t *testing.T, o Options, name string, p compile.Platform) {
	t.Helper()
	reference, err := o.Registry.Reference(name, o.Version.String())
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: p.OS, Architecture: p.Architecture}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != p.Architecture || !config.Created.Equal(o.Commit.Time) || config.Config.Labels["org.opencontainers.image.version"] != o.Version.String() ||
		!slices.Equal(config.Config.Entrypoint, []string{"/" + name}) || config.Config.User != "65532:65532" {
		t.Errorf("%s for %s: config %+v", name, p, config)
	}
	binaries, err := tiny()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(binaries[p.Architecture])
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, image)
	if string(want) != files[name] {
		t.Errorf("%s for %s: the program of the image is another one", name, p)
	}
	if !strings.Contains(files["licenses/THIRD-PARTY"], "stdlib") || !strings.Contains(files["licenses/LICENSE"], "Apache License") {
		t.Errorf("%s for %s: licenses are missing: has %d files", name, p, len(files))
	}
}

// pullChart pulls the pushed chart, and returns its bytes.
func pullChart(t *testing.T, o Options) string {
	t.Helper()
	folder := t.TempDir()
	if _, err := o.Helm.Run(t.Context(), "pull", "oci://"+o.Registry.Address+"/charts/plumbline", "--version", o.Version.Chart(), "--plain-http", "--destination", folder); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "plumbline-"+o.Version.Chart()+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var imageLine = regexp.MustCompile(`(?m)\b(?:image|redirectImage): "?([^\s"{]+)"?$`)

// renderImages lists the images of a rendering of the pushed chart.
func renderImages(t *testing.T, o Options, args ...string) map[string]bool {
	t.Helper()
	args = append([]string{"template", "plumbline", "oci://" + o.Registry.Address + "/charts/plumbline", "--version", o.Version.Chart(), "--plain-http",
		"--namespace", "plumbline-system", "--set", "redis.auth.existingSecret=r", "--set", "assessor.digestKey.existingSecret=d", "--set", "executor.evidence.existingSecret=e"}, args...)
	text, err := o.Helm.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, match := range imageLine.FindAllStringSubmatch(text, -1) {
		if match[1] != "plumbline.invalid/never-pulled" { // of the self-test's own object, which has no pods
			named[match[1]] = true
		}
	}
	return named
}

func TestAVersionThatTheRegistryHasIsNeverChanged(t *testing.T) {
	address := serveRegistry(t)
	o := options(t, address, "v0.3.0")
	if err := Push(t.Context(), o, makeRelease(t, o)); err != nil {
		t.Fatal(err)
	}
	before := pullChart(t, o)
	o.Commit.Time = o.Commit.Time.Add(time.Hour)
	err := Push(t.Context(), o, makeRelease(t, o))
	if taken, ok := errors.AsType[*oci.TakenError](err); !ok || !strings.Contains(taken.Error(), "choose another VERSION") {
		t.Fatalf("another release of the same version: %v", err)
	}
	for _, want := range []string{"/webhook:", "/xds:", "/charts/plumbline:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if pullChart(t, o) != before {
		t.Error("the chart was replaced")
	}
}

func TestTwoReleasesOfOneCommitAreEqual(t *testing.T) {
	o := options(t, "", "v0.3.0-rc.1")
	first := checksums(t, makeRelease(t, o).Folder)
	o.Dist = t.TempDir()
	second := checksums(t, makeRelease(t, o).Folder)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	o.Dist, o.Commit.Time = t.TempDir(), o.Commit.Time.Add(time.Hour)
	if cmp.Equal(first, checksums(t, makeRelease(t, o).Folder)) {
		t.Error("a release of another time is equal too: the comparison sees nothing")
	}
}

func checksums(t *testing.T, folder string) []archive.Sum {
	t.Helper()
	sums, err := archive.Checksums(folder)
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestTheFolderOfARelease(t *testing.T) {
	o := options(t, "", "v0.3.0")
	release := makeRelease(t, o)
	var got []string
	for _, sum := range checksums(t, release.Folder) {
		if !strings.Contains(sum.Name, "/blobs/") {
			got = append(got, sum.Name)
		}
	}
	var want []string
	for _, name := range compile.Images() {
		want = append(want, "images/"+name+"/index.json", "images/"+name+"/oci-layout")
	}
	for _, p := range compile.PluginPlatforms() {
		for _, command := range compile.Commands(p) {
			want = append(want, fmt.Sprintf("sbom/%s_%s_%s.cdx.json", command, p.OS, p.Architecture))
		}
		ending := map[bool]string{true: "zip", false: "tar.gz"}[p.OS == "windows"]
		want = append(want, fmt.Sprintf("plugin/kubectl-plumbline_v0.3.0_%s_%s.%s", p.OS, p.Architecture, ending))
	}
	want = append(want, "SHA256SUMS", "charts/plumbline-0.3.0.tgz", "images.txt", "plugin/plumbline.krew.yaml", "provenance.intoto.json")
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	list, err := os.ReadFile(filepath.Join(release.Folder, "images.txt"))
	if err != nil || strings.Count(string(list), chart.DefaultRegistry+"/") != len(compile.Images()) {
		t.Errorf("images (%v):\n%s", err, list)
	}
}

func TestAFailedReleaseLeavesNothing(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cases := map[string]struct {
		ctx   context.Context
		spoil func(o *Options)
		want  string
	}{
		"a command that does not compile": {t.Context(), func(o *Options) {
			o.Compile = func(context.Context, compile.Platform, string, ...string) error {
				return errors.New("does not compile")
			}
		}, "does not compile"},
		"an interrupt after compiling": {interrupted, func(o *Options) {
			o.Packages = func(context.Context, compile.Platform, ...string) (map[string][]string, error) {
				cancel()
				return nil, nil
			}
		}, "context canceled"},
		"an unknown license": {t.Context(), func(o *Options) { o.Cache.Toolchain = t.TempDir() }, "unknown"},
		"a binary of another architecture": {t.Context(), func(o *Options) {
			o.Compile = func(ctx context.Context, p compile.Platform, folder string, commands ...string) error {
				if p.Architecture != "arm64" {
					return compileTiny(ctx, p, folder, commands...)
				}
				if err := compileTiny(ctx, compile.Platform{OS: p.OS, Architecture: "amd64"}, folder, commands...); err != nil {
					return err
				}
				return os.CopyFS(compile.Folder(folder, p), os.DirFS(compile.Folder(folder, compile.Platform{OS: p.OS, Architecture: "amd64"})))
			}
		}, "want EM_AARCH64"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(t, "", "v0.3.0")
			tc.spoil(&o)
			if _, err := Make(tc.ctx, o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			entries, err := os.ReadDir(o.Dist)
			if err != nil || len(entries) > 0 {
				t.Errorf("left %v (%v)", entries, err)
			}
		})
	}
}
