// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// buildImages builds the binaries and wraps each in an image, without Docker.
// Names always carry the local registry; a push gives them the registry's own.
func buildImages(ctx context.Context, n *narrator, o options) error {
	n.progress("building binaries and images")
	if err := os.MkdirAll(imageDir, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", imageDir, err)
	}
	if err := call(ctx, n, "make", "--no-print-directory", "binaries"); err != nil {
		return err
	}
	var archives []string
	for _, image := range []struct{ name, tag string }{
		{"webhook", imageTag}, {"assessor", imageTag}, {"shop", imageTag}, {"shop", "hotfix"},
	} {
		archive := filepath.Join(imageDir, image.name+"-"+image.tag+".tar")
		if err := call(ctx, n, clusterTool, "image", "build", "--name", image.name, "--binary", "bin/"+image.name,
			"--tag", localRegistry+"/"+image.name+":"+image.tag, "--out", archive); err != nil {
			return err
		}
		archives = append(archives, archive)
	}
	redis := filepath.Join(imageDir, "redis-"+imageTag+".tar")
	if err := call(ctx, n, clusterTool, "image", "redis", "--tag", localRegistry+"/redis:"+imageTag, "--out", redis); err != nil {
		return err
	}
	if o.registry == "" {
		return nil
	}
	return call(ctx, n, clusterTool, append([]string{"image", "push", "--registry", o.registry}, append(archives, redis)...)...)
}
