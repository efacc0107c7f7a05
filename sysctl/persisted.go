package sysctl

import "fmt"

// Tool is a program that applies persisted settings.
type Tool string

// Tools. They read the same directories, but not alike.
const (
	// SystemdSysctl is systemd-sysctl(8), which runs at boot, and again for each
	// network interface as it appears (99-systemd.rules). Of a key that stands
	// in several lines it writes only what the last one says, and patterns
	// never touch a key that has a line of its own. It does not read
	// /etc/sysctl.conf, unless a distribution puts a link to it into sysctl.d. As
	// of version 252 and later.
	SystemdSysctl Tool = "systemd-sysctl"
	// ProcpsSysctl is "sysctl --system" of procps-ng, which people and scripts
	// run. It writes line after line, and reads /etc/sysctl.conf too, after all
	// others. As of the version after 4.0.4; up to that one an exclusion stands
	// for one name and never for a pattern, and 3.3.17 and older know no patterns.
	ProcpsSysctl Tool = "procps"
)

// Tools returns both tools.
func Tools() []Tool { return []Tool{SystemdSysctl, ProcpsSysctl} }

// Persisted are the settings that files hold for the next boot. What else sets
// some is not part of it: the kernel's command line (sysctl.*), credentials,
// network managers, and programs such as kube-proxy.
type Persisted struct {
	// Files are in the order in which they are read: by name, whatever their
	// directories, and /etc/sysctl.conf last. Those that another file hides
	// stand before it.
	Files []File `json:"files"`
}

// File is one file of settings.
type File struct {
	Path     string    `json:"path"`               // from the root, such as /etc/sysctl.d/90-x.conf
	Target   string    `json:"target,omitempty"`   // what it is a link to, links followed
	Masked   bool      `json:"masked,omitzero"`    // a link to /dev/null: it only hides others
	HiddenBy string    `json:"hiddenBy,omitempty"` // the file of this name that is read in its place
	Err      string    `json:"err,omitempty"`      // why it could not be read
	ReadBy   []Tool    `json:"readBy,omitempty"`   // the tools that read it
	Lines    []Line    `json:"lines,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// Line is an assignment, or an exclusion from patterns.
type Line struct {
	Number  int    `json:"line"`             // from 1
	Text    string `json:"text"`             // without blanks at its ends
	Pattern string `json:"pattern"`          // the key, or a pattern for keys, with slashes
	Value   string `json:"value"`            // as it is written to the kernel
	Exclude bool   `json:"exclude,omitzero"` // "-key" without a value
	MayFail bool   `json:"mayFail,omitzero"` // "-key = value"
	Only    Tool   `json:"only,omitempty"`   // the one tool that understands it
	// Spelling is Pattern as it is written, in slash notation, if it differs: with
	// a separator in front or twice. Both tools find the key, but procps does not
	// see that a line with another spelling names the same one.
	Spelling string `json:"spelling,omitempty"`
}

// Warning is about a line that does not, or may not, do what it seems to.
type Warning struct {
	Line    int    `json:"line"` // from 1
	Text    string `json:"text"` // the line
	Problem string `json:"problem"`
}

// String returns the line's number, the problem and the line.
func (w Warning) String() string { return fmt.Sprintf("line %d: %s: %q", w.Line, w.Problem, w.Text) }

// Source is the line that a value comes from. The zero Source means that no
// line sets it.
type Source struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Text    string `json:"text"`
	Pattern bool   `json:"pattern,omitzero"` // it names the key only by a pattern
}

// String returns file, line and text, such as
// "/etc/sysctl.d/90-x.conf:3: net.ipv4.conf.all.arp_ignore = 1".
func (s Source) String() string {
	if s == (Source{}) {
		return "no file"
	}
	return fmt.Sprintf("%s:%d: %s", s.File, s.Line, s.Text)
}

// directories are where files are looked for. A file in one of them hides those
// of its name in the ones that follow (sysctl.d(5), sysctl(8)).
func directories() []string {
	return []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"}
}
