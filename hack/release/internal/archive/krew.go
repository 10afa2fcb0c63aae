// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// KrewPlatform is the plugin for one platform in an archive at an address.
type KrewPlatform struct {
	OS, Architecture string
	URL, SHA256      string
	Binary           string
}

// KrewManifest describes the plugin to krew, see https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
func KrewManifest(version string, platforms []KrewPlatform) ([]byte, error) {
	type selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	type platform struct {
		Selector selector `yaml:"selector"`
		URI      string   `yaml:"uri"`
		SHA256   string   `yaml:"sha256"`
		Binary   string   `yaml:"bin"`
	}
	type manifest struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   map[string]string `yaml:"metadata"`
		Spec       struct {
			Version     string     `yaml:"version"`
			Homepage    string     `yaml:"homepage"`
			Short       string     `yaml:"shortDescription"`
			Description string     `yaml:"description"`
			Caveats     string     `yaml:"caveats"`
			Platforms   []platform `yaml:"platforms"`
		} `yaml:"spec"`
	}
	m := manifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "plumbline"}}
	m.Spec.Version, m.Spec.Homepage = version, "https://github.com/plumbline-dev/plumbline"
	m.Spec.Short = "Find drift, its writer, and undo it"
	m.Spec.Description = "Shows which guarded objects drifted from their authorized state, which field changed and\nwho changed it. Accepts drift, previews and controls remediation, shows what each Envoy\nhas, and checks the installation of Plumbline."
	m.Spec.Caveats = "All commands but \"hash -f\" and \"version --client\" need Plumbline in the cluster; see\nhttps://github.com/plumbline-dev/plumbline/blob/main/docs/guides/install.md"
	for _, p := range platforms {
		m.Spec.Platforms = append(m.Spec.Platforms, platform{
			Selector: selector{map[string]string{"os": p.OS, "arch": p.Architecture}}, URI: p.URL, SHA256: p.SHA256, Binary: p.Binary,
		})
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(m); err != nil {
		return nil, fmt.Errorf("writing the manifest of krew: %w", err)
	}
	return out.Bytes(), nil
}
