// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Requirements is the file that pins a component that comes in a wheel: pip
// reads it, and so do we.
const Requirements = "requirements.txt"

// pin is the one form of a line that we accept of the many that pip does: one
// version, one architecture, one digest. Without the architecture, any of the
// digests would do on any machine.
var pin = regexp.MustCompile(`^(\S+)==(\S+) ; platform_machine == "(\w+)" --hash=sha256:[0-9a-f]{64}$`)

// machines gives the platform_machine of Python for an architecture of Go.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// wheelPins returns the version of the component's wheel, and for which machines
// there is a pin.
func wheelPins(components fs.FS, c Component) (version string, pinned map[string]bool, err error) {
	name := path.Join(c.Name, Requirements)
	data, err := fs.ReadFile(components, name)
	if err != nil {
		return "", nil, err
	}
	pinned = map[string]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part := pin.FindStringSubmatch(line)
		switch {
		case part == nil || part[1] != c.Wheel:
			return "", nil, fmt.Errorf("%s: %q does not pin %s to a version, a machine and a digest", name, line, c.Wheel)
		case version != "" && version != part[2]:
			return "", nil, fmt.Errorf("%s pins %s to both %s and %s", name, c.Wheel, version, part[2])
		case pinned[part[3]]:
			return "", nil, fmt.Errorf("%s pins %s for %s twice", name, c.Wheel, part[3])
		}
		version, pinned[part[3]] = part[2], true
	}
	if version == "" {
		return "", nil, fmt.Errorf("%s does not pin %s", name, c.Wheel)
	}
	return "v" + version, pinned, nil
}

// CheckTarget returns an error when the component's wheel is not there for the
// target: pip would skip every pin, and report success.
func (s Source) CheckTarget(t Target) error {
	if t.OS != "linux" || !s.pinned[machines[t.Arch]] {
		return fmt.Errorf("no wheel of %s is pinned for %s/%s", s.Wheel, t.OS, t.Arch)
	}
	return nil
}
