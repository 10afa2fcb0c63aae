// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DefaultRegistry is the registry that the chart and its README name in the repository.
const DefaultRegistry = "docker.io/plumbline"

// Image is one that the chart may pull.
type Image struct {
	Name, Reference string
	// Platforms as linux/amd64; none where they are the upstream project's.
	Platforms []string
}

// Upstream is the image of another project, by values of the chart.
type Upstream struct {
	Name string
	// Values is the path of its values: repository, tag and digest.
	Values          string
	Repository, Tag string
	// Digest is empty unless the release pins it.
	Digest string
}

// Reference is what pods pull.
func (u Upstream) Reference() string {
	if u.Digest != "" {
		return u.Repository + "@" + u.Digest
	}
	return u.Repository + ":" + u.Tag
}

// Release is what the chart is made for.
type Release struct {
	// Version is the chart's, without a v; AppVersion the tag of the images.
	Version, AppVersion string
	Registry            string
	Prerelease          bool
	Images              []Image
	Upstream            []Upstream
	License             []byte
}

// Stage writes the chart in source, as the release has it, to the folder target.
func Stage(source, target string, release Release) error {
	if err := os.CopyFS(target, os.DirFS(source)); err != nil {
		return fmt.Errorf("copying the chart: %w", err)
	}
	values := map[string]string{"image.registry": release.Registry}
	for _, u := range release.Upstream {
		values[u.Values+".repository"], values[u.Values+".tag"], values[u.Values+".digest"] = u.Repository, u.Tag, u.Digest
	}
	edits := map[string]func([]byte) ([]byte, error){
		"values.yaml": func(text []byte) ([]byte, error) { return SetScalars(text, values) },
		"Chart.yaml":  release.annotate,
		"README.md": func(text []byte) ([]byte, error) {
			return bytes.ReplaceAll(text, []byte(DefaultRegistry), []byte(release.Registry)), nil
		},
	}
	for name, edit := range edits {
		path := filepath.Join(target, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("preparing the chart: %w", err)
		}
		if text, err = edit(text); err != nil {
			return fmt.Errorf("preparing %s of the chart: %w", name, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // a chart is public
			return fmt.Errorf("preparing the chart: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(target, "LICENSE"), release.License, 0o644); err != nil { //nolint:gosec // public
		return fmt.Errorf("preparing the chart: %w", err)
	}
	return nil
}

// annotate writes what Artifact Hub reads, see https://artifacthub.io/docs/topics/annotations/helm/.
func (r Release) annotate(text []byte) ([]byte, error) {
	type image struct {
		Name      string   `yaml:"name"`
		Image     string   `yaml:"image"`
		Platforms []string `yaml:"platforms,omitempty"`
	}
	var images []image
	for _, i := range r.Images {
		images = append(images, image{i.Name, i.Reference, i.Platforms})
	}
	for _, u := range r.Upstream {
		images = append(images, image{Name: u.Name, Image: u.Reference()})
	}
	list, err := yaml.Marshal(images)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	annotations := find(&document, []string{"annotations"})
	if annotations == nil || annotations.Kind != yaml.MappingNode {
		return nil, errors.New("it has no annotations")
	}
	setEntry(annotations, "artifacthub.io/images", string(list))
	setEntry(annotations, "artifacthub.io/prerelease", fmt.Sprint(r.Prerelease))
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func setEntry(mapping *yaml.Node, key, value string) {
	scalar := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if strings.Contains(value, "\n") {
		scalar.Style = yaml.LiteralStyle
	} else {
		scalar.Style = yaml.DoubleQuotedStyle
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content[i+1] = scalar
			return
		}
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, scalar)
}
