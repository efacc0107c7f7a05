package sysctl

import (
	"maps"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
	"github.com/strictarp/strictarp/sysctl/internal/linkdump"
)

// ReadInterfaces reads every interface's own values in the calling thread's
// network namespace in one netlink dump, which is several times as fast as
// reading files below /proc: it holds for each interface what the kernel keeps
// (IFLA_AF_SPEC, AF_INET, IFLA_INET_CONF). What it does not hold is "all" and
// "default"; ReadARP has them too and falls back to files.
//
// Interfaces without IPv4, such as those with an MTU below 68, are left out, and
// so are parameters that the kernel is too old to have. A dump during which
// interfaces came or went is begun anew, three times at most. On systems other
// than Linux the error matches errors.ErrUnsupported.
func ReadInterfaces() (map[string]Values, error) { return readInterfaces() }

// collector makes Values of what a dump holds.
type collector struct {
	params []indexed
	blank  Values // all parameters: a copy of it is filled faster than an empty map
	links  map[string]Values
}

type indexed struct {
	param Param
	index int // IPV4_DEVCONF_x
}

func newCollector() *collector {
	c := &collector{blank: Values{}}
	for _, p := range Params() {
		if index, ok := devconf.Index(string(p)); ok {
			c.params = append(c.params, indexed{p, index})
			c.blank[p] = 0
		}
	}
	return c
}

func (c *collector) start() { c.links = map[string]Values{} }

func (c *collector) add(l linkdump.Link) {
	values := maps.Clone(c.blank)
	for _, p := range c.params {
		if v, ok := l.Conf.Value(p.index); ok {
			values[p.param] = int(v)
		} else {
			delete(values, p.param)
		}
	}
	if len(values) > 0 {
		c.links[string(l.Name)] = values
	}
}
