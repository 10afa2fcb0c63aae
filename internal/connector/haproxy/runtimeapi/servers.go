// SPDX-License-Identifier: Apache-2.0

package runtimeapi

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ServerState is what a server of a backend does.
type ServerState int

// The states.
const (
	// Down is a server to which HAProxy sends no request because of a check.
	Down ServerState = iota
	// Ready gets requests.
	Ready
	// Draining gets none and answers those that it has.
	Draining
	// Maintenance gets none.
	Maintenance
)

func (s ServerState) String() string {
	return [...]string{"Down", "Ready", "Draining", "Maintenance"}[s]
}

// Server is a row of `show servers state`.
type Server struct {
	Backend, Name string
	// Address is the zero one if the server has a name that is not resolved.
	Address netip.AddrPort
	State   ServerState
}

// Servers reads the servers of all backends.
func (c Client) Servers(ctx context.Context) ([]Server, error) {
	said, err := c.Do(ctx, "show", "servers", "state")
	if err != nil {
		return nil, err
	}
	return ParseServers(said)
}

// ParseServers reads the answer to `show servers state`, of format 1.
func ParseServers(said string) ([]Server, error) {
	lines := strings.Split(said, "\n")
	if len(lines) < 2 || lines[0] != "1" || !strings.HasPrefix(lines[1], "# ") {
		return nil, fmt.Errorf("reading states of servers: got %.100q", said)
	}
	columns := map[string]int{}
	for i, name := range strings.Fields(lines[1])[1:] {
		columns[name] = i
	}
	var servers []Server
	for _, line := range lines[2:] {
		row := fields{record: strings.Fields(line), columns: columns}
		if len(row.record) == 0 {
			continue
		}
		s := Server{Backend: row.text("be_name"), Name: row.text("srv_name"), State: stateOf(row.number("srv_op_state"), row.number("srv_admin_state"))}
		port := row.number("srv_port")
		if address, err := netip.ParseAddr(row.text("srv_addr")); err == nil && port <= 0xffff {
			s.Address = netip.AddrPortFrom(address, uint16(port)) //nolint:gosec // see above
		}
		if row.err != nil {
			return nil, fmt.Errorf("reading states of servers in %.100q: %w", line, row.err)
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// stateOf reads the two states of a server. The bits are those of the management guide, section 9.3;
// that the configuration has a server disabled stays on when the server gets ready.
func stateOf(operational, administrative uint64) ServerState {
	const forcedMaintenance, inheritedMaintenance, forcedDrain, inheritedDrain, resolverMaintenance = 0x01, 0x02, 0x08, 0x10, 0x20
	switch {
	case administrative&(forcedMaintenance|inheritedMaintenance|resolverMaintenance) != 0:
		return Maintenance
	case administrative&(forcedDrain|inheritedDrain) != 0:
		return Draining
	case operational == 0:
		return Down
	default:
		return Ready
	}
}

// Workers reads the PIDs of the workers of a master, the present ones first.
func (c Client) Workers(ctx context.Context) (present, old []int, err error) {
	said, err := c.Do(ctx, "show", "proc")
	if err != nil {
		return nil, nil, err
	}
	return ParseWorkers(said)
}

// ParseWorkers reads the answer to `show proc`.
func ParseWorkers(said string) (present, old []int, err error) {
	lines := strings.Split(said, "\n")
	if !strings.HasPrefix(lines[0], "#<PID>") {
		return nil, nil, fmt.Errorf("reading processes: got %.100q", said)
	}
	part := ""
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "#") {
			part = line
			continue
		}
		words := strings.Fields(line)
		if len(words) < 2 || words[1] != "worker" {
			continue
		}
		pid, err := strconv.Atoi(words[0])
		switch {
		case err != nil || pid <= 0:
			return nil, nil, fmt.Errorf("reading processes: %.20q is no PID", words[0])
		case part == "# old workers":
			old = append(old, pid)
		default:
			present = append(present, pid)
		}
	}
	return present, old, nil
}

// Reload has a master load its configurations anew. A master of 2.7 and later says whether that went
// well, and one of before says nothing.
func (c Client) Reload(ctx context.Context) error {
	said, err := c.Do(ctx, "reload")
	if err != nil {
		return err
	}
	return ParseReload(said)
}

// ParseReload reads the answer to `reload`: a line Success=1 or Success=0, a line of two hyphens, and
// the log.
func ParseReload(said string) error {
	verdict, log, _ := strings.Cut(said, "\n")
	switch verdict {
	case "", "Success=1":
		return nil
	default:
		return &ProgramError{"reload", strings.TrimPrefix(strings.TrimPrefix(log, "--"), "\n")}
	}
}
