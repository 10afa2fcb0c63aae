// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exampleRegistry is the registry in the README.
const exampleRegistry = "registry.example.com/plumbline"

var releaseLine = regexp.MustCompile(`(?m)^make release VERSION=(\S+) REGISTRY=(\S+)`)

// TestTheFirstScreenInstallsWhatItReleases takes the commands of the README's first screen
// literally: the chart that its `helm install` names is the one that its `make release`
// pushes. `helm template` stands for the installation.
func TestTheFirstScreenInstallsWhatItReleases(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(readme)
	release := releaseLine.FindStringSubmatch(text)
	if release == nil || release[2] != exampleRegistry {
		t.Fatalf("the README releases %q, want a `make release` to %s", release, exampleRegistry)
	}
	address := serveRegistry(t)
	o := options(t, address, release[1])
	if err := Push(t.Context(), o, makeRelease(t, o)); err != nil {
		t.Fatal(err)
	}
	installs := 0
	for line := range strings.Lines(text) {
		arguments, found := strings.CutPrefix(strings.TrimSpace(line), "helm install ")
		if !found {
			continue
		}
		installs++
		arguments = strings.ReplaceAll(arguments, exampleRegistry, address)
		rendered, err := o.Helm.Run(t.Context(), append([]string{"template", "--plain-http", "--set", "redis.auth.existingSecret=r", "--set", "assessor.digestKey.existingSecret=d"}, strings.Fields(arguments)...)...)
		if err != nil {
			t.Errorf("%s%v", line, err)
			continue
		}
		if want := "image: " + address + "/assessor:" + release[1]; !strings.Contains(strings.ReplaceAll(rendered, `"`, ""), want) {
			t.Errorf("%sdoes not install %q", line, want)
		}
	}
	if installs == 0 {
		t.Error("the README installs nothing")
	}
}

// Helm writes a time into the artifact of a chart; it is that of the commit.
func TestAChartOfOneCommitIsOneArtifact(t *testing.T) {
	var digests []string
	for range 2 {
		o := options(t, "", "v0.3.0")
		digest, err := o.Helm.Push(t.Context(), makeRelease(t, o).Chart, serveRegistry(t), true)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two releases of one commit give the artifacts %v", digests)
	}
}
