// A choice of a few that changes what is below.

export interface Choice<Value extends string> {
  value: Value;
  text: string;
  count?: string | undefined;
}

interface Props<Value extends string> {
  label: string;
  of: Choice<Value>[];
  value: Value;
  choose: (value: Value) => void;
  look?: "tabs" | "segments";
}

export function Tabs<Value extends string>({
  label,
  of,
  value,
  choose,
  look = "tabs",
}: Props<Value>) {
  return (
    <div class={look} role="group" aria-label={label}>
      {of.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => choose(choice.value)}
        >
          {choice.text}
          {choice.count !== undefined && <span class="tab-count num">{choice.count}</span>}
        </button>
      ))}
    </div>
  );
}
