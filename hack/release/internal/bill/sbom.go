// SPDX-License-Identifier: Apache-2.0

package bill

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Subject is the program that a bill of materials is of.
type Subject struct {
	Name, Version string
	// Platform as linux/amd64.
	Platform string
	// SHA256 of the binary.
	SHA256 string
	// Time of the commit.
	Time time.Time
}

// CycloneDX writes the bill of materials of one binary, as JSON. It has no serial number,
// so that equal binaries give equal bytes.
func CycloneDX(subject Subject, licenses []License) ([]byte, error) {
	bom := cdx.NewBOM()
	reference := purl("github.com/plumbline-dev/plumbline", subject.Version) + "#cmd/" + subject.Name
	main := cdx.Component{
		BOMRef: reference, Type: cdx.ComponentTypeApplication, Name: subject.Name, Version: subject.Version, PackageURL: reference,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: subject.SHA256}},
		Licenses:   licensesOf([]string{"Apache-2.0"}),
		Properties: &[]cdx.Property{{Name: "plumbline:platform", Value: subject.Platform}},
	}
	bom.Metadata = &cdx.Metadata{Timestamp: subject.Time.UTC().Format(time.RFC3339), Component: &main}
	components := make([]cdx.Component, 0, len(licenses))
	references := make([]string, 0, len(licenses))
	for _, license := range licenses {
		component := componentOf(license)
		components, references = append(components, component), append(references, component.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: reference, Dependencies: &references}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("writing the bill of materials of %s: %w", subject.Name, err)
	}
	return out.Bytes(), nil
}

func componentOf(license License) cdx.Component {
	m := license.Module
	component := cdx.Component{
		BOMRef: purl(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: purl(m.Path, m.Version), Licenses: licensesOf(license.IDs),
	}
	if m.Sum != "" { // a hash of hashes, and so none of those that CycloneDX knows
		component.Properties = &[]cdx.Property{{Name: "plumbline:go.sum", Value: m.Sum}}
	}
	return component
}

func licensesOf(ids []string) *cdx.Licenses {
	licenses := make(cdx.Licenses, 0, len(ids))
	for _, id := range ids {
		licenses = append(licenses, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &licenses
}

// purl is the address of a Go module, see https://github.com/package-url/purl-spec.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}
