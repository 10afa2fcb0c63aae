// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// systemImages returns the archives of the images that a node needs to run any
// pod, and packs them if the cache lacks them.
func (m Manager) systemImages(ctx context.Context, c plan.Cluster) ([]string, error) {
	if c.Options.Nodes == 0 {
		return nil, nil
	}
	pause, dns := c.Programs[component.Pause], c.Programs[component.CoreDNS]
	// The folders' names cover their content, so a name made of them does too.
	key := sha256.Sum256([]byte(filepath.Base(pause) + "\x00" + filepath.Base(dns)))
	folder := filepath.Join(m.Builder.Cache, "images-"+hex.EncodeToString(key[:6]))
	specs := map[string]image.Spec{
		"pause.tar":   image.Static("pause", c.Program("pause"), plan.PauseImage, nil),
		"coredns.tar": image.Static("coredns", c.Program("coredns"), plan.DNSImage, nil),
	}
	err := builder.Publish(ctx, folder, m.Progress, func(staging string) error {
		for name, spec := range specs {
			if _, err := image.WriteArchive(spec, filepath.Join(staging, name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("packing the system images: %w", err)
	}
	return []string{filepath.Join(folder, "pause.tar"), filepath.Join(folder, "coredns.tar")}, nil
}

// Load imports image archives into the cluster's node.
func (m Manager) Load(ctx context.Context, name string, archives []string) error {
	record, err := m.Read(name)
	if err != nil {
		return err
	}
	if record.Options.Nodes == 0 {
		return fmt.Errorf("cluster %s has no node to load images into", name)
	}
	if err := intact(record); err != nil {
		return fmt.Errorf("cluster %s is broken: %w", name, err)
	}
	return importImages(ctx, record.Cluster, archives)
}

func importImages(ctx context.Context, c plan.Cluster, archives []string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, archive := range archives {
		group.Go(func() error {
			output, err := exec.CommandContext(ctx, c.Program("ctr"), c.ImportArgs(archive)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("loading %s: %w: %s", archive, err, output)
			}
			return nil
		})
	}
	return group.Wait()
}
