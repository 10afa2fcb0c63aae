// SPDX-License-Identifier: Apache-2.0

package bill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ReadCache asks the go command where sources are.
func ReadCache(ctx context.Context) (Cache, error) {
	output, err := goCommand(ctx, "", nil, "env", "GOMODCACHE", "GOROOT")
	if err != nil {
		return Cache{}, err
	}
	modules, toolchain, found := strings.Cut(strings.TrimSpace(output), "\n")
	if !found {
		return Cache{}, fmt.Errorf("asking go for GOMODCACHE and GOROOT: it answered %q", output)
	}
	return Cache{Modules: modules, Toolchain: toolchain}, nil
}

// ReadPackages lists the folders of all packages that commands are compiled from, by
// module. environment chooses the platform.
func ReadPackages(ctx context.Context, root string, environment []string, commands ...string) (map[string][]string, error) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{$.Dir}}{{end}}"}
	for _, command := range commands {
		args = append(args, "./cmd/"+command)
	}
	output, err := goCommand(ctx, root, environment, args...)
	if err != nil {
		return nil, err
	}
	packages := map[string][]string{}
	for line := range strings.Lines(output) {
		if module, folder, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			packages[module] = append(packages[module], folder)
		}
	}
	return packages, nil
}

func goCommand(ctx context.Context, folder string, environment []string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = folder, append(os.Environ(), environment...)
	output, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("calling go %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("calling go %s: %w", args[0], err)
	}
	return string(output), nil
}
