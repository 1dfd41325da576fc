package discovery

import "fmt"

// A Setting is how much an API matters. It is a value of flags (pflag.Value) and of configuration files
// (encoding.TextUnmarshaler). The zero Setting is Auto.
type Setting int //nolint:recvcheck // a flag is set through a pointer, a setting is written as a value

const (
	// Auto uses the API if it is installed.
	Auto Setting = iota
	// Required makes it an error if the API is not installed or does not work.
	Required
	// Disabled skips the check.
	Disabled
)

// settingNames are the texts of the settings.
var settingNames = map[Setting]string{Auto: "auto", Required: "required", Disabled: "disabled"}

// String returns the text of the setting.
func (s Setting) String() string {
	if name, ok := settingNames[s]; ok {
		return name
	}
	return fmt.Sprintf("Setting(%d)", int(s))
}

// Set parses a setting.
func (s *Setting) Set(text string) error {
	for setting, name := range settingNames {
		if name == text {
			*s = setting
			return nil
		}
	}
	return fmt.Errorf("%q is none of required, disabled and auto", text)
}

// Type names the kind of value in usage texts.
func (s *Setting) Type() string { return "required|disabled|auto" }

// UnmarshalText parses a setting.
func (s *Setting) UnmarshalText(text []byte) error { return s.Set(string(text)) }

// MarshalText returns the text of the setting.
func (s Setting) MarshalText() ([]byte, error) {
	name, ok := settingNames[s]
	if !ok {
		return nil, fmt.Errorf("there is no setting %d", int(s))
	}
	return []byte(name), nil
}
