// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// requirement is the one form of a line of an environment: one version, and the digests of its wheels. A distribution
// with compiled code has a line for each architecture, with a digest for each version of Python.
var requirement = regexp.MustCompile(`^(\S+)==(\S+?)(?: ; platform_machine == "(\w+)")?(?: --hash=sha256:[0-9a-f]{64})+$`)

// environmentPins returns the version of the distribution that the component is named after, and the machines for which
// each distribution is pinned.
func environmentPins(components fs.FS, c Component) (version string, pinned map[string]bool, err error) {
	name := path.Join(c.Name, Requirements)
	data, err := fs.ReadFile(components, name)
	if err != nil {
		return "", nil, err
	}
	versions, machinesOf := map[string]string{}, map[string]map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part := requirement.FindStringSubmatch(line)
		if part == nil {
			return "", nil, fmt.Errorf("%s: %q does not pin a distribution to a version and a digest", name, line)
		}
		distribution, of, machine := part[1], part[2], part[3]
		switch has := machinesOf[distribution]; {
		case has == nil:
			machinesOf[distribution] = map[string]bool{}
		case versions[distribution] != of:
			return "", nil, fmt.Errorf("%s pins %s to both %s and %s", name, distribution, versions[distribution], of)
		case has[machine] || has[""] || machine == "":
			return "", nil, fmt.Errorf("%s pins %s twice for one machine", name, distribution)
		}
		versions[distribution], machinesOf[distribution][machine] = of, true
	}
	if versions[c.Wheel] == "" {
		return "", nil, fmt.Errorf("%s does not pin %s", name, c.Wheel)
	}
	return "v" + versions[c.Wheel], machinesOfAll(machinesOf), nil
}

// machinesOfAll returns the machines for which each distribution has a wheel. The machine "" stands for all.
func machinesOfAll(machinesOf map[string]map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, machine := range machines {
		all[machine] = true
		for _, has := range machinesOf {
			all[machine] = all[machine] && (has[machine] || has[""])
		}
	}
	return all
}
