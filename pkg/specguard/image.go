// SPDX-License-Identifier: Apache-2.0

package specguard

import "strings"

// imageRepository is the repository an image reference names, in the form that
// the container runtimes give it: "nginx", "nginx:1.27" and
// "docker.io/library/nginx@sha256:…" are the same repository. A first component
// is a registry when it holds a dot or a colon or is "localhost"
// (github.com/distribution/reference).
func imageRepository(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	slash := strings.LastIndexByte(name, '/')
	if colon := strings.LastIndexByte(name, ':'); colon > slash {
		name = name[:colon]
	}
	registry, path, found := strings.Cut(name, "/")
	if !found || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		registry, path = "docker.io", name
	}
	registry = strings.ToLower(registry)
	if registry == "index.docker.io" {
		registry = "docker.io"
	}
	if registry == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return registry + "/" + path
}
