// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// The names of the files in the folder.
const (
	ConfigFile  = "plumbline.cfg"
	SplitsFile  = "splits.map"
	MatchesFile = "matches.map"
)

// Options of an installation.
type Options struct {
	// Folder holds the files. It is absolute, and of letters, digits and ._/- alone.
	Folder string
	// Instance tells the abstract sockets of programs of one network namespace apart: 1 to 32 letters
	// and digits.
	Instance string
}

var (
	plainFolder   = regexp.MustCompile(`^/[0-9A-Za-z._/-]*$`)
	plainInstance = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)
)

// Arms has the slots of each backend of an arm, by its name.
type Arms map[string]Servers

// Servers of an arm. Those of Failover get requests while none of Own is there.
type Servers struct{ Own, Failover []Slot }

// PlaceArms gives each endpoint of ports a slot, and forgets arms that are gone.
func PlaceArms(before Arms, ports []envoyxds.Port, busy func(Server) bool) Arms {
	next := Arms{}
	for _, p := range ports {
		for _, a := range p.Arms {
			name := BackendName(p, a)
			was := before[name]
			place := Servers{Own: Place(was.Own, a.Own, func(i int) bool { return busy(Server{name, serverName(i)}) })}
			if mayFailOver(p, a) {
				place.Failover = Place(was.Failover, a.Failover, func(i int) bool { return busy(Server{name, failoverName(i)}) })
			}
			next[name] = place
		}
	}
	return next
}

// mayFailOver is so of each arm of a split to which no header forces requests. Which variation is the
// stable one no resource says if it has no endpoints; its arm has slots as well, which stay empty.
func mayFailOver(p envoyxds.Port, a envoyxds.Arm) bool { return p.Division != nil && !a.Forced }

// Commands of all arms that are there before and after; see [Commands].
func (a Arms) Commands(after Arms) []string {
	var all []string
	for _, name := range sortedNames(after) {
		was, is := a[name], after[name]
		all = append(all, Commands(name, serverName, was.Own, is.Own)...)
		all = append(all, Commands(name, failoverName, was.Failover, is.Failover)...)
	}
	return all
}

func sortedNames(a Arms) []string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Files are what HAProxy loads beside the user's own configuration, whose last file the configuration
// here has to be: a `defaults` section counts for the sections after it.
type Files struct {
	Config, Splits, Matches []byte
	// Structure is equal if no reload is needed between two.
	Structure string
}

// Render writes the files of ports. A port that HAProxy cannot carry out is an error: see [Check].
func Render(o Options, ports []envoyxds.Port, arms Arms) (Files, error) {
	if !plainFolder.MatchString(o.Folder) || !plainInstance.MatchString(o.Instance) {
		return Files{}, fmt.Errorf("rendering HAProxy's configuration: folder %q or instance %q has another character than letters, digits and ._/-", o.Folder, o.Instance)
	}
	w := &writer{options: o}
	w.writeLine("# Plumbline writes this file. Load it after all others.")
	w.writeLine("defaults plb")
	for _, l := range defaults {
		w.writeLine("  %s", l)
	}
	single := portsOfServices(ports)
	var errs []error
	for _, p := range ports {
		if err := Check(p); err != nil {
			errs = append(errs, fmt.Errorf("rendering port %d of Service %s/%s for HAProxy: %w", p.Number, p.Namespace, p.Service, err))
			continue
		}
		w.writePort(p, single[serviceName(p)] == 1, arms)
	}
	if err := errors.Join(errs...); err != nil {
		return Files{}, err
	}
	w.structure.Write(w.matches.Bytes())
	sum := sha256.Sum256(w.structure.Bytes())
	return Files{Config: w.config.Bytes(), Splits: w.splits.Bytes(), Matches: w.matches.Bytes(), Structure: hex.EncodeToString(sum[:16])}, nil
}

// portsOfServices counts ports by the name of their Service.
func portsOfServices(ports []envoyxds.Port) map[string]int {
	count := map[string]int{}
	for _, p := range ports {
		count[serviceName(p)]++
	}
	return count
}

// forever is the longest time-out that HAProxy has. Time-outs of clients are those of the user's frontends.
const forever = "24d"

// defaults of our sections. A request that was never sent is sent to another server.
var defaults = []string{
	"mode http",
	"timeout connect 1s",
	"timeout client " + forever,
	"timeout server " + forever,
	"timeout tunnel " + forever,
	"option redispatch 1",
	"retry-on conn-failure",
}

// writer collects files.
type writer struct {
	options                            Options
	config, structure, splits, matches bytes.Buffer
}

// writeLine writes a line of the structure.
func (w *writer) writeLine(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	w.config.WriteString(text)
	w.structure.WriteString(text)
}

// writeLive writes a line with a part that belongs to the structure. The rest changes without a reload.
func (w *writer) writeLive(structure, text string) {
	w.config.WriteString(text + "\n")
	w.structure.WriteString(structure + "\n")
}

// nameFile returns the path of a file in the folder of the configuration.
func (w *writer) nameFile(name string) string { return path.Join(w.options.Folder, name) }

// writePort writes the backend that users name, the frontend behind it, and the backends of its arms.
func (w *writer) writePort(p envoyxds.Port, alone bool, arms Arms) {
	name, suffix := portName(p), protocolOf(p)
	sum := sha256.Sum256([]byte(name))
	socket := "abns@plumbline-" + w.options.Instance + "-" + hex.EncodeToString(sum[:8])
	names := []string{name}
	if alone {
		names = append(names, serviceName(p))
	}
	for _, n := range names {
		w.writeLine("")
		w.writeLine("backend %s from plb", n)
		w.writeLine("  server in %s%s", socket, suffix)
	}
	w.writeLine("")
	w.writeLine("frontend %s.in from plb", name)
	w.writeLine("  bind %s%s", socket, suffix)
	w.writeRules(p)
	for _, a := range p.Arms {
		w.writeArm(p, a, arms[BackendName(p, a)], suffix)
	}
}

// writeArm writes the backend of an arm.
func (w *writer) writeArm(p envoyxds.Port, a envoyxds.Arm, servers Servers, suffix string) {
	w.writeLine("")
	w.writeLine("backend %s from plb", BackendName(p, a))
	w.writeLine("  balance leastconn")
	w.writeLine("  timeout connect %dms", p.Connect.Milliseconds())
	if p.RetriesOff {
		w.writeLine("  retries 0")
	}
	w.writeLine("  default-server pool-purge-delay %dms%s", p.Idle.Milliseconds(), suffix)
	for i, s := range servers.Own {
		w.writeServer(serverName(i), s, "")
	}
	if len(servers.Failover) > 0 {
		w.writeLine("  option allbackups")
	}
	for i, s := range servers.Failover {
		w.writeServer(failoverName(i), s, " backup")
	}
}

// writeServer writes the server of a slot. A program that starts gets no server for a slot that drains.
func (w *writer) writeServer(name string, s Slot, options string) {
	structure, text := "  server "+name+options, ""
	switch s.State {
	case Empty, Draining:
		text = "  server " + name + " 127.0.0.1:1" + options + " disabled"
	case Serving:
		text = "  server " + name + " " + s.Address.String() + options
	}
	w.writeLive(structure, text)
}

// quoteArgument quotes an argument, so that HAProxy takes it literally. Names and values that Check lets through have no quote.
func quoteArgument(argument string) string {
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}
