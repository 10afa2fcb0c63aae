// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	imageDir      = "bin/images"
	localRegistry = "docker.io/plumbline"
	imageTag      = "dev"
	// hotfixTag is another tag of the shop, which somebody sets by hand.
	hotfixTag = "hotfix"
)

// imageSet says where the cluster finds the images.
type imageSet struct {
	registry string // with the path that all names are appended to
	suffix   string // of every tag
}

func (s imageSet) tag() string        { return imageTag + s.suffix }
func (s imageSet) shop() string       { return s.registry + "/shop:" + imageTag + s.suffix }
func (s imageSet) shopHotfix() string { return s.registry + "/shop:" + hotfixTag + s.suffix }

// loaded are the images as they are loaded into the local cluster's node.
var loaded = imageSet{registry: localRegistry}

// pushedTo are the images of a registry: a push keeps their path below it.
func pushedTo(registry, suffix string) imageSet {
	return imageSet{registry: strings.TrimSuffix(registry, "/") + "/plumbline", suffix: suffix}
}

// buildImages builds the binaries and wraps each in an image, without Docker.
// Names always carry the local registry; a push gives them the registry's own.
func buildImages(ctx context.Context, n *narrator) ([]string, error) {
	n.progress("building binaries and images")
	if err := os.MkdirAll(imageDir, 0o755); err != nil {
		return nil, fmt.Errorf("creating %s: %w", imageDir, err)
	}
	if err := call(ctx, n, "make", "--no-print-directory", "binaries"); err != nil {
		return nil, err
	}
	var archives []string
	for _, image := range []struct{ name, tag string }{
		{"webhook", imageTag}, {"assessor", imageTag}, {"xds", imageTag}, {"redirect", imageTag}, {"shop", imageTag}, {"shop", hotfixTag},
	} {
		archive := filepath.Join(imageDir, image.name+"-"+image.tag+".tar")
		if err := call(ctx, n, clusterTool, "image", "build", "--name", image.name, "--binary", "bin/"+image.name,
			"--tag", localRegistry+"/"+image.name+":"+image.tag, "--out", archive); err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	// Programs of others, as this machine has them or their packages bring them.
	for _, name := range []string{"redis", "envoy"} {
		archive := filepath.Join(imageDir, name+"-"+imageTag+".tar")
		if err := call(ctx, n, clusterTool, "image", name, "--tag", localRegistry+"/"+name+":"+imageTag, "--out", archive); err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// pushImages pushes the archives and says where they are then.
func pushImages(ctx context.Context, n *narrator, registry, suffix string, archives []string) (imageSet, error) {
	n.progress("pushing the images to %s", registry)
	args := append([]string{"image", "push", "--registry", registry, "--tag-suffix", suffix}, archives...)
	return pushedTo(registry, suffix), call(ctx, n, clusterTool, args...)
}

// contentSuffix names the archives by their content. Under an unchanged tag nodes
// would go on running the image that they hold, and Helm would see no change.
func contentSuffix(archives []string) (string, error) {
	sum := sha256.New()
	for _, archive := range archives {
		if err := addFile(sum, archive); err != nil {
			return "", fmt.Errorf("reading image %s: %w", archive, err)
		}
	}
	return "-" + hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// addFile writes the file's own digest, which has a fixed length: a byte that
// moves from one file to the next changes the sum.
func addFile(sum io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	own := sha256.New()
	if _, err := io.Copy(own, file); err != nil {
		return err
	}
	_, err = sum.Write(own.Sum(nil))
	return err
}
