package pagetest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// RequireEnv is the environment variable that makes it a failure that there is no
// browser, if it is 1.
const RequireEnv = "STRICTARP_REQUIRE_CHROMIUM"

// Browser is a headless Chromium, spoken to by way of chromedriver (W3C WebDriver).
type Browser struct {
	t       *testing.T
	session string // URL
}

// OpenBrowser starts a browser for one test. Without one the test is skipped, or fails
// as RequireEnv says.
func OpenBrowser(t *testing.T) *Browser {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	driver, driverErr := exec.LookPath("chromedriver")
	if err != nil || driverErr != nil {
		const cure = "there is no chromium with chromedriver; cure: apt-get install chromium chromium-driver"
		if os.Getenv(RequireEnv) == "1" {
			t.Fatal(cure)
		}
		t.Skip(cure)
	}
	home := t.TempDir()
	b := &Browser{t: t, session: startDriver(t, driver, home) + "/session"}
	args := []string{
		"--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + home, "--window-size=1280,900",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // which root has to be
	}
	var made struct {
		SessionID string
	}
	b.call(http.MethodPost, "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"binary": chromium, "args": args},
		"timeouts":           map[string]int{"script": 300_000}, // ms; a busy machine is no fault
	}}}, &made)
	b.session += "/" + made.SessionID
	t.Cleanup(func() { b.call(http.MethodDelete, "", nil, nil) })
	return b
}

var startedOn = regexp.MustCompile(`started successfully on port (\d+)`)

// startDriver returns the URL of a chromedriver that ends with the test.
func startDriver(t *testing.T, path, home string) string {
	t.Helper()
	driver := exec.Command(path, "--port=0")
	driver.Env = append(os.Environ(), "HOME="+home) // where the browser puts what it does not put into its folder
	out, err := driver.StdoutPipe()
	if err == nil {
		err = driver.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	url := ""
	t.Cleanup(func() {
		if response, err := http.Get(url + "/shutdown"); err == nil { // it takes its files along
			_ = response.Body.Close()
		} else {
			_ = driver.Process.Kill()
		}
		_ = driver.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := startedOn.FindStringSubmatch(lines.Text()); m != nil {
			url = "http://127.0.0.1:" + m[1]
			return url
		}
	}
	t.Fatal("chromedriver does not say on which port it listens")
	return ""
}

// call makes a request of the session.
func (b *Browser) call(method, path string, body, into any) {
	b.t.Helper()
	text := []byte("{}")
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			b.t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, b.session+path, bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Value json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %s: %v: %s", method, path, response.Status, err, answer.Value)
	}
	if into != nil {
		if err := json.Unmarshal(answer.Value, into); err != nil {
			b.t.Fatalf("%s %s: %v: %s", method, path, err, answer.Value)
		}
	}
}

// Load loads a page.
func (b *Browser) Load(url string) {
	b.t.Helper()
	b.call(http.MethodPost, "/url", map[string]any{"url": url}, nil)
}

// Eval runs the body of a function in the page and reads what it returns. The page's
// policy does not apply to it.
func (b *Browser) Eval(into any, script string, args ...any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.call(http.MethodPost, "/execute/sync", map[string]any{"script": script, "args": args}, into)
}

// Press presses a key: a character, or one of WebDriver's code points for keys.
func (b *Browser) Press(key string) {
	b.t.Helper()
	b.call(http.MethodPost, "/actions", map[string]any{"actions": []map[string]any{{
		"type": "key", "id": "keyboard", "actions": []map[string]string{{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}},
	}}}, nil)
}

// Prefers emulates light or dark.
func (b *Browser) Prefers(scheme string) {
	b.t.Helper()
	b.devtools(nil, "Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	})
}

// Size emulates a screen.
func (b *Browser) Size(width, height int) {
	b.t.Helper()
	b.devtools(nil, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	})
}

// Print returns the page as PDF, on paper of A4.
func (b *Browser) Print() []byte {
	b.t.Helper()
	return b.file("Page.printToPDF", map[string]any{"paperWidth": 8.27, "paperHeight": 11.69})
}

// Screenshot returns what is to be seen, as PNG.
func (b *Browser) Screenshot() []byte {
	b.t.Helper()
	return b.file("Page.captureScreenshot", map[string]any{})
}

func (b *Browser) file(command string, params any) []byte {
	b.t.Helper()
	var made struct {
		Data string
	}
	b.devtools(&made, command, params)
	data, err := base64.StdEncoding.DecodeString(made.Data)
	if err != nil {
		b.t.Fatal(fmt.Errorf("%s: %w", command, err))
	}
	return data
}

func (b *Browser) devtools(into any, command string, params any) {
	b.t.Helper()
	b.call(http.MethodPost, "/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, into)
}
