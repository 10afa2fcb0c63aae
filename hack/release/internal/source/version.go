// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// Version is a semantic version that can be the tag of an image and of a chart.
type Version struct{ text string }

// ParseVersion reads a version such as v0.1.0 or v0.2.0-rc.1. Build metadata is an
// error: the tag of an image cannot hold a plus sign.
func ParseVersion(text string) (Version, error) {
	switch {
	case text == "":
		return Version{}, errors.New("reading the version: there is none: say VERSION=v0.1.0")
	case !semver.IsValid(text) || semver.Canonical(text) != strings.SplitN(text, "+", 2)[0]:
		return Version{}, fmt.Errorf("reading the version %q: want a semantic version with a v and three numbers, such as v0.1.0 or v0.2.0-rc.1", text)
	case semver.Build(text) != "":
		return Version{}, fmt.Errorf("reading the version %q: the tag of an image cannot hold %q: leave it out", text, semver.Build(text))
	default:
		return Version{text}, nil
	}
}

// String is the version with its v: the tag of images, and the stamp of binaries.
func (v Version) String() string { return v.text }

// Chart is the version without its v, as Helm wants it.
func (v Version) Chart() string { return strings.TrimPrefix(v.text, "v") }

// IsPrerelease reports whether the API may still change, which Semantic Versioning says
// of version 0 and of versions with a hyphen.
func (v Version) IsPrerelease() bool {
	return semver.Major(v.text) == "v0" || semver.Prerelease(v.text) != ""
}
