// SPDX-License-Identifier: Apache-2.0

// Package oci makes one image for several architectures, and pushes it.
package oci

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
)

// Program is a static binary for each architecture.
type Program struct {
	Name string
	// Binaries by architecture, as Go names it.
	Binaries map[string]string
	// Licenses are the texts that the image carries below /licenses.
	Licenses []image.Entry
	Version  string
	Revision string
	Created  time.Time
}

// Build makes the index of a program, its architectures in the given order. Each binary
// must be static, and of its architecture.
func Build(p Program, architectures []string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		one, err := p.image(architecture)
		if err != nil {
			return nil, fmt.Errorf("building the image %s for %s: %w", p.Name, architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        one,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	annotated, _ := mutate.Annotations(index, p.labels()).(v1.ImageIndex)
	return annotated, nil
}

func (p Program) image(architecture string) (v1.Image, error) {
	binary := p.Binaries[architecture]
	if err := image.CheckStatic(binary); err != nil {
		return nil, err
	}
	if err := image.CheckArchitecture(binary, architecture); err != nil {
		return nil, err
	}
	spec := image.Static(p.Name, binary, p.Name+":"+p.Version, p.Licenses)
	spec.Architecture, spec.Created, spec.Labels, spec.Compressed = architecture, p.Created, p.labels(), true
	one, err := image.Build(spec)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(mutate.MediaType(one, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

// labels are those of https://github.com/opencontainers/image-spec/blob/main/annotations.md.
func (p Program) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "plumbline-" + p.Name,
		"org.opencontainers.image.version":  p.Version,
		"org.opencontainers.image.revision": p.Revision,
		"org.opencontainers.image.created":  p.Created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":   "https://github.com/plumbline-dev/plumbline",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}
