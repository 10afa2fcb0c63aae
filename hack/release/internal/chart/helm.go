// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/hack/release/internal/archive"
)

// Helm calls one helm binary. It reads no configuration of the user but the credentials
// of registries.
type Helm struct{ Binary string }

// Run returns what a call prints.
func (h Helm) Run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, h.Binary, args...)
	var output, problem bytes.Buffer
	command.Stdout, command.Stderr = &output, &problem
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("calling helm %s: %w: %s", args[0], err, strings.TrimSpace(problem.String()+output.String()))
	}
	return output.String() + problem.String(), nil
}

// Version asks which Helm it is.
func (h Helm) Version(ctx context.Context) (string, error) {
	output, err := h.Run(ctx, "version", "--template", "{{.Version}}")
	if err != nil {
		return "", err
	}
	version := strings.TrimSpace(output)
	if !strings.HasPrefix(version, "v4.") {
		return "", fmt.Errorf("checking Helm: %s is %s, want Helm 4: `bin/cluster which helm` has one", h.Binary, version)
	}
	return version, nil
}

// Package packs a staged chart into folder, and returns the file. Nothing but its content
// and the time decides the bytes.
func (h Helm) Package(ctx context.Context, staged, folder string, release Release, at time.Time) (string, error) {
	if _, err := h.Run(ctx, "package", staged, "--version", release.Version, "--app-version", release.AppVersion, "--destination", folder); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "plumbline-"+release.Version+".tgz")
	packed, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the packed chart: %w", err)
	}
	files, err := unpack(packed)
	if err != nil {
		return "", fmt.Errorf("reading the packed chart: %w", err)
	}
	again, err := archive.TarGzip(files, at)
	if err != nil {
		return "", fmt.Errorf("packing the chart: %w", err)
	}
	if err := os.WriteFile(file, again, 0o644); err != nil { //nolint:gosec // a chart is public
		return "", fmt.Errorf("packing the chart: %w", err)
	}
	// Helm gives the artifact the time of the file.
	if err := os.Chtimes(file, at, at); err != nil {
		return "", fmt.Errorf("packing the chart: %w", err)
	}
	return file, nil
}

// unpack lists the files of a chart, Chart.yaml first, as Helm expects it.
func unpack(packed []byte) ([]archive.File, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var files []archive.File
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		files = append(files, archive.File{Name: header.Name, Content: content, Mode: fs.FileMode(0o644)})
	}
	slices.SortStableFunc(files, func(a, b archive.File) int {
		return strings.Compare(rank(a.Name)+a.Name, rank(b.Name)+b.Name)
	})
	return files, nil
}

func rank(name string) string {
	if strings.HasSuffix(name, "/Chart.yaml") {
		return "0"
	}
	return "1"
}

var pushedDigest = regexp.MustCompile(`Digest:\s+(sha256:[0-9a-f]{64})`)

// Push uploads a packed chart below the repository, and returns the digest of the artifact.
func (h Helm) Push(ctx context.Context, file, repository string, plainHTTP bool) (string, error) {
	args := []string{"push", file, "oci://" + repository}
	if plainHTTP {
		args = append(args, "--plain-http")
	}
	output, err := h.Run(ctx, args...)
	if err != nil {
		return "", fmt.Errorf("pushing the chart to %s: %w: log in with `helm registry login`", repository, err)
	}
	match := pushedDigest.FindStringSubmatch(output)
	if match == nil {
		return "", fmt.Errorf("pushing the chart to %s: Helm told no digest: %s", repository, output)
	}
	return match[1], nil
}
