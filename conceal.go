package strictarp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// concealer replaces what must not get about in facts. It works on their JSON
// form, so that nothing is forgotten when facts get new fields.
type concealer struct {
	secrets   []secretPattern
	names     map[string]string // nil if they are kept
	addresses *addressMapper    // nil if they are kept
}

type secretPattern struct {
	*regexp.Regexp
	with string
}

func newConcealer(f Facts, o WriteOptions) (*concealer, error) {
	c := &concealer{}
	for _, p := range []struct{ pattern, with string }{
		{`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`, hidden},
		{`eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`, hidden}, // a JSON web token
		{`(?i)(bearer|basic)\s+[\w.~+/=-]{8,}`, "$1 " + hidden},
		{`(?i)((?:password|passwd|auth_pass|passphrase|token|secret|secret-?key|api-?key|credentials?|client-key-data)["']?\s*[=:]\s*["']?)[^\s"',;&]+`, "${1}" + hidden},
	} {
		r, err := regexp.Compile(p.pattern)
		if err != nil {
			return nil, err
		}
		c.secrets = append(c.secrets, secretPattern{r, p.with})
	}
	key := o.Key
	if len(key) == 0 {
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
	}
	if o.Names {
		c.names = newNames(f)
	}
	if o.Addresses {
		m, err := newAddressMapper(key)
		if err != nil {
			return nil, err
		}
		c.addresses = m
	}
	return c, nil
}

func (c *concealer) conceal(f Facts) (Facts, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return Facts{}, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // of which there are some that a float64 would round
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return Facts{}, err
	}
	if nodes, ok := tree["nodes"].(map[string]any); ok {
		renamed := make(map[string]any, len(nodes))
		for name, node := range nodes {
			renamed[c.text(name)] = node
		}
		tree["nodes"] = renamed
	}
	if text, err = json.Marshal(c.value(tree)); err != nil {
		return Facts{}, err
	}
	var concealed Facts
	err = json.Unmarshal(text, &concealed)
	return concealed, err
}

func (c *concealer) value(value any) any {
	switch v := value.(type) {
	case string:
		return c.text(v)
	case []any:
		for i := range v {
			v[i] = c.value(v[i])
		}
	case map[string]any:
		c.object(v)
	}
	return value
}

func (c *concealer) object(v map[string]any) {
	if v["kind"] == "Secret" {
		delete(v, "data")
		delete(v, "stringData")
	}
	name, _ := v["name"].(string)
	for key, value := range v {
		text, isText := value.(string)
		switch {
		case isText && (sensitive(key) || key == "value" && sensitive(name)) && text != "": // the latter as in a container's env
			v[key] = hidden
		case key == "kubectl.kubernetes.io/last-applied-configuration":
			delete(v, key) // the object once more, with what is taken out of it here
		default:
			v[key] = c.value(value)
		}
	}
}

// sensitive reports whether a name is one that secrets have.
func sensitive(name string) bool {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
	for _, end := range []string{"password", "passwd", "passphrase", "token", "secretkey", "apikey", "accesskey", "privatekey", "keydata", "authpass", "credential", "credentials"} {
		if strings.HasSuffix(plain, end) {
			return true
		}
	}
	return false
}

func (c *concealer) text(s string) string {
	for _, p := range c.secrets {
		s = p.ReplaceAllString(s, p.with)
	}
	if c.addresses != nil {
		s = c.addresses.text(s)
	}
	if c.names != nil {
		s = renamed(c.names, s)
	}
	return s
}
